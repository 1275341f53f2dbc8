"""Policies that are learnt from data: the environment, training, model files, and the policies themselves.

Training and the environment need the extra `learning`; playing a trained model does not.
"""
