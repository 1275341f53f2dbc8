"""Themis in the world of its authors' simulator, which differs from the paper's text and from this project's Themis.

The simulator (github.com/kshiteejm/mltiply, branch arjun_nsdi2020, January 2020) is the published program nearest to
the figures of K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020. This is a program of
our own by its rules; which version drew the figures is not known. Its world, in minutes:

- A job does iterations on n accelerators at the speed n * S, S = 1 within one slot, else a factor of the job for slots
  of one machine, machines of one rack, and racks. It takes any number of accelerators up to its width, and changes it
  at the end of an iteration. Every accelerator has a lease of its own. Stopping and restoring cost nothing.
- Groups are searches: trials are sorted by their iterations; the first half stops after a part of the longest trial's
  iterations, half of the rest after twice that, and so on.
- Themis holds auctions among *jobs*, without hidden payments and without ρ in the bids (`auction`); its rivals give one
  accelerator at a time (`rivals`).
- ρ of a job is its time over its time alone at full width times the mean contention of its life (`fairness`).
"""
