"""Policies that say who is next."""
