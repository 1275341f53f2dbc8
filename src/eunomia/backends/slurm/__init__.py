"""The Slurm backend: Slurm starts and stops gangs, through its command-line tools."""
