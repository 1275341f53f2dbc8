"""Run times that no user declared, estimated from the history of like jobs."""
