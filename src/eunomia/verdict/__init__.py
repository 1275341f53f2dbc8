"""What runs say when they are compared: groups of seeds, paired differences, and the verdict in sentences; no files."""
