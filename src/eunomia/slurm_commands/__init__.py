"""Commands of the names and options of Slurm's, as clients of the service; `eunomia slurm-shim` puts them in a folder."""
