"""The engines: exact optimisation over arrays; no cluster words beyond capacity, no policy names."""
