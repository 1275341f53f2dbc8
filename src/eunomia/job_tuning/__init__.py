"""The resources of one job, found by measuring a few steps in some of its shapes."""
