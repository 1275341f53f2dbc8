"""Estimators of throughputs that were not measured, and how they are judged on a measured table.

`matching` is the published estimator of Gavel, `pair_estimator` ours; `judging` compares both with the truth.
"""
