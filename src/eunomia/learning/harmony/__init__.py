"""Harmony: placement learnt by reinforcement learning (Y. Bao, Y. Peng and C. Wu, INFOCOM 2019)."""
