"""The loop of a run, its record, and replay and explanation of records."""
