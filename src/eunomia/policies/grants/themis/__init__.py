"""Themis: finish-time fairness of apps by auctions."""
