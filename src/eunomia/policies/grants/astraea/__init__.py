"""ASTRAEA: accelerator-time that is fair over the long term, to tenants and to their jobs."""
