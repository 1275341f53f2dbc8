"""Policies that say who sits where."""
