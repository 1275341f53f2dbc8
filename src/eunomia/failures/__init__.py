"""Reasons of failures: the published ones, and a classifier of logs."""

from eunomia.failures.classifier import Classification, classify

__all__ = ["Classification", "classify"]
