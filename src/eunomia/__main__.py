"""`python -m eunomia` is the `eunomia` command."""

from eunomia.cli.app import main

main()
