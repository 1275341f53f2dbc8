"""`python -m eunomia` is the `eunomia` command."""

from eunomia.cli import main

main()
