"""Free accelerators, gangs that are placed whole or not at all, and the grants that say where they run."""
