"""Questions of another kind: who bids what for which accelerators, and what an auction gives each."""
