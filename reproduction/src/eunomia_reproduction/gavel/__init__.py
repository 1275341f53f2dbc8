"""Gavel: its simulator run by run, and the curves of its paper."""
