"""Policies that say what share of time each should get."""
