"""How uneven a model's tensors are: a few big ones keep the network busy in bursts when a gang spreads over machines.

Sizes in MB and the largest tensor: J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI
2019, table 2.
"""

from __future__ import annotations

import math

from eunomia.throughputs.job_type_aliases import model_of

LARGEST_OF_MB = {  # model -> largest tensor, all tensors
    "vgg19": (392.0, 548.1),
    "vgg16": (392.0, 527.8),
    "vgg11": (392.0, 506.8),
    "alexnet": (144.0, 235.9),
    "resnet152": (9.0, 230.2),
    "resnet101": (9.0, 170.4),
    "resnet50": (9.0, 97.7),
    "inception4": (5.9, 162.9),
    "inceptionv3": (7.8, 91.0),
    "googlenet": (3.9, 26.7),
}
_ALIAS = {"inceptionv4": "inception4"}


def largest_tensor(job_type: str) -> float:
    """Return the largest tensor's part of all parameters, such as 0.7; nan for a model that is not in the table."""
    model = model_of(job_type)
    largest, whole = LARGEST_OF_MB.get(_ALIAS.get(model, model), (math.nan, 1.0))
    return largest / whole
