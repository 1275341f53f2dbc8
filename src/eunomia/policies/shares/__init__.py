"""Policies that answer with shares of time."""
