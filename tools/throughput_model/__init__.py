"""Compares the analytic model of throughputs with measured tables, and fits its facts to them."""
