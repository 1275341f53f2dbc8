"""One bid of each bidder at most: the best choice of bids, and what each bidder's presence costs the others."""
