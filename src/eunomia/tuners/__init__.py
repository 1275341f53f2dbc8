"""Tuners: users inside a backend that search hyperparameters and act through events."""
