"""The model that a job type trains, whatever its source calls it, and how skewed the model's tensors are.

A few big tensors keep the network busy in bursts when a gang spreads over machines. Sizes in MB: J. Gu et al.,
"Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, table 2.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

Kind: TypeAlias = tuple[str, int]  # job type, accelerators of the gang

# Published tables name some models by their data set.
MODEL_BY_ALIAS = {"imagenet": "resnet50", "cifar10": "resnet18", "inception3": "inceptionv3", "languagemodel": "lm"}
LARGEST_OF_MB = {  # model → largest tensor, all tensors
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


def model_of(job_type: str) -> str:
    """Return the model's name in lower-case letters and digits: resnet50 for "ResNet-50 (batch size 64)"."""
    plain = re.sub(r"[^a-z0-9]", "", job_type.split(" (batch size", 1)[0].casefold())
    return MODEL_BY_ALIAS.get(plain, plain)


def largest_tensor(job_type: str) -> float:
    """Return the largest tensor's fraction of all parameters, such as 0.7; nan for a model that is not in the table."""
    model = model_of(job_type)
    largest, total = LARGEST_OF_MB.get(_ALIAS.get(model, model), (math.nan, 1.0))
    return largest / total
