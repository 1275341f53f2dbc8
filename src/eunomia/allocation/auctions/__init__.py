"""Auctions without a simulation: bid tables in, an allocation to each bidder out."""
