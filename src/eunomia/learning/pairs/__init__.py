"""Pairs of jobs on one accelerator by a trained correction of what is believed of them."""
