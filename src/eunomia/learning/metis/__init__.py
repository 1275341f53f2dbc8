"""Metis: nodes for elastic training jobs, slot by slot, by repeated inference with a delayed reward."""
