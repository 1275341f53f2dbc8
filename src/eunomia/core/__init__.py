"""The mind: a deterministic function of the moments so far."""
