"""What a job type trains, whatever the source calls it."""

from __future__ import annotations

import re
from typing import TypeAlias

Kind: TypeAlias = tuple[str, int]  # job type, accelerators of the gang

# What published tables call by the data set, by the model that their authors trained on it.
MODEL_BY_ALIAS = {"imagenet": "resnet50", "cifar10": "resnet18", "inception3": "inceptionv3", "languagemodel": "lm"}


def model_of(job_type: str) -> str:
    """Return the model's name in small letters and digits: "ResNet-50 (batch size 64)" and "imagenet" are resnet50."""
    plain = re.sub(r"[^a-z0-9]", "", job_type.split(" (batch size", 1)[0].casefold())
    return MODEL_BY_ALIAS.get(plain, plain)
