"""Lexicographic water filling, on trees of groups, for few rows and for many."""
