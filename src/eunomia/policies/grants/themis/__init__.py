"""Themis: who would finish latest, compared with a cluster shared equally, may bid for what comes free."""
