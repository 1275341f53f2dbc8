"""Symphony (Banerjee et al., ICML 2020): kernels of data-flow graphs on CPUs, GPUs and FPGAs, in a world of its own.

`eunomia train symphony` trains its network; `experiment`, `decisions` and `samples` are what `reproduce` measures.
"""
