"""Builds the objects of a run from a scenario."""
