"""The worlds: they say what happened and carry out what was decided."""
