"""Policies that answer with an order of jobs."""
