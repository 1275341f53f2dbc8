"""Ours against the obvious way, measured side by side in one run: `make bench`."""
