"""When a job of Shockwave's trace changes its batch size.

The trace names a mode for each job and nothing more. What the modes do stands in that system's code, not in its data:
`gns` doubles the batch at epochs that were measured for each model, batch and gang size; `accordion` trains with the
largest batch outside of regimes in which the model learns fast.

Reference: P. Zheng et al., "Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in Machine
Learning", NSDI 2023, section 3, and its published simulator.
"""

from __future__ import annotations

import math

SAMPLES = {"ResNet-18": 50000, "ResNet-50": 100000, "Transformer": 10000, "LM": 59675, "Recommendation": 117907}
LARGEST = {"ResNet-18": 256, "ResNet-50": 128, "Transformer": 128, "LM": 80, "Recommendation": 8192}
SMALLEST = {"ResNet-18": 16, "ResNet-50": 16, "Transformer": 16, "LM": 5, "Recommendation": 512}

# Epochs at which `gns` doubles the batch: by model, first batch and accelerators. Other jobs keep their batch.
DOUBLES: dict[tuple[str, int, int], tuple[int, ...]] = {
    ("ResNet-18", 16, 1): (31, 41, 51, 71),
    ("ResNet-18", 32, 1): (21, 31, 51),
    ("ResNet-18", 64, 1): (11, 31),
    ("ResNet-18", 128, 1): (11,),
    ("ResNet-18", 16, 2): (21, 31, 91, 111),
    ("ResNet-18", 32, 2): (11, 21, 41),
    ("ResNet-18", 64, 2): (21, 41),
    ("ResNet-18", 128, 2): (41,),
    ("ResNet-18", 16, 4): (11, 21, 81, 91),
    ("ResNet-18", 32, 4): (21, 31, 61),
    ("ResNet-18", 64, 4): (11, 61),
    ("ResNet-18", 128, 4): (11,),
    ("ResNet-50", 64, 1): (101,),
    ("ResNet-50", 32, 2): (101, 111),
    ("ResNet-50", 64, 2): (81,),
    ("ResNet-50", 32, 4): (131, 221),
    ("ResNet-50", 64, 4): (191,),
    ("LM", 5, 1): (31, 41, 61, 71),
    ("LM", 10, 1): (11, 21, 41),
    ("LM", 20, 1): (11, 41),
    ("LM", 40, 1): (11,),
    ("LM", 5, 2): (31, 51, 61, 71),
    ("LM", 10, 2): (11, 31, 41),
    ("LM", 20, 2): (31, 41),
    ("LM", 40, 2): (11,),
    ("LM", 5, 4): (11, 31, 71, 91),
    ("LM", 10, 4): (11, 31, 61),
    ("LM", 20, 4): (11, 61),
    ("LM", 40, 4): (61,),
    ("Recommendation", 512, 1): (21, 41, 71, 91),
    ("Recommendation", 1024, 1): (21, 51, 91),
    ("Recommendation", 2048, 1): (21, 41),
    ("Recommendation", 4096, 1): (41,),
}


def steps_per_epoch(model: str, batch: int) -> int:
    """Return the steps in which every sample is seen once."""
    return math.ceil(SAMPLES[model] / batch)


def grown(model: str, batch: int, accelerators: int, epoch: int) -> int:
    """Return the batch at which `gns` trains in that epoch."""
    doubled = sum(epoch >= start for start in DOUBLES.get((model, batch, accelerators), ()))
    return min(batch << doubled, LARGEST[model])


def is_critical(model: str, batch: int, epoch: int) -> bool:
    """Say whether `accordion` keeps to the first batch in that epoch, as the simulator does while it runs."""
    if model == "LM":
        return epoch < 10
    if model == "Recommendation":
        return epoch < {512: 30, 1024: 30, 2048: 40}.get(batch, 10)
    if model == "ResNet-50":
        return epoch % 30 < 10
    return epoch < (20 if batch == 256 else 10) or 150 <= epoch < 160 or 250 <= epoch < 260


def foreseen(model: str, mode: str, batch: int, accelerators: int, epochs: int) -> list[int]:
    """Return the batch of each epoch as the simulator foresees it, which is not quite what it then does.

    The last epoch of a job whose batch has been doubled more than once is foreseen at its first batch, and for
    `accordion` the first 30 % of all epochs are critical.
    """
    if mode == "gns":
        starts = DOUBLES.get((model, batch, accelerators), ())
        pattern = [grown(model, batch, accelerators, epoch) for epoch in range(epochs)]
        if len(starts) > 1 and epochs > starts[1]:
            pattern[-1] = batch
        return pattern
    if mode != "accordion" or model == "Transformer":
        return [batch] * epochs
    return [
        batch if _foreseen_critical(model, batch, epoch) or epoch <= epochs * 0.3 else LARGEST[model]
        for epoch in range(epochs)
    ]


def _foreseen_critical(model: str, batch: int, epoch: int) -> bool:
    late = model == "Recommendation" and (60 <= epoch < 70 or 80 <= epoch < 90)
    return late or is_critical(model, batch, epoch)
