"""The machinery of `solvers.linear` for many rows: prices from a sample, then only the rows they leave undecided."""
