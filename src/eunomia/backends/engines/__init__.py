"""Engines that start and stop gangs where Eunomia decides, such as Slurm; one file an engine, and what they share."""
