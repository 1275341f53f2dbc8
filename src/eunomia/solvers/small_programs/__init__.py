"""Few rows: the level and the total of a small problem, whole in one compiled call."""
