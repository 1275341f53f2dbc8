"""Policies that choose the devices of each job."""
