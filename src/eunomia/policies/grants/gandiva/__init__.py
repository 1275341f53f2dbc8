"""Gandiva as published: who runs in this slice of time, in which pairs, and on which machines."""
