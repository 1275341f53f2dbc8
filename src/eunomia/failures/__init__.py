"""Why jobs fail: the published reasons, and which of them a job's log tells of."""

from eunomia.failures.classifier import Classification, classify

__all__ = ["Classification", "classify"]
