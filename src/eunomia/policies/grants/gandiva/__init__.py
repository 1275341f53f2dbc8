"""Gandiva as published: the jobs that run in a time slice, their pairs, and their machines."""
