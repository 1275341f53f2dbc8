"""Commands with the names and options of Slurm's, as clients of the service; see `eunomia slurm-shim`."""
