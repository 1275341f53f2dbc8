"""This machine: gangs are processes, each under a supervisor."""
