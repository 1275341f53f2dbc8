"""Slowdowns by placement: the tables of Themis and Philly.

A slowdown S ≥ 1 multiplies the step time. Throughputs are of a gang in the best place of the empty cluster, so

    rate = rate alone · S(best place) / S(its place)

Themis: S by level (slot, machine, rack, across racks) in four kinds of models; K. Mahajan et al., "Themis", NSDI 2020,
measured VGG16 on 4 P100 at 103.6 images/s on one server and 80.4 on two (1.289) and Inception-v3 at 242 and 243. The
other entries, slots and racks among them, are modelled.

Philly: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters", ATC 2019, Table 4 (ResNet-50 on 2 GPUs:
114.8 images/s on one server, 98.0 on two) and Table 5 (mean utilisation of 16-GPU jobs on 2, 4 and 8 servers: 43.66,
40.94 and 28.56 %, taken for speed). It has no racks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eunomia.model import elementary
from eunomia.model.rounding import interpolate
from eunomia.throughputs.job_type_facts import Kind, model_of
from eunomia.throughputs.placement_level import PlacementLevel, PlacementSpan

# Slowdown at each level, never decreasing.
PROFILES: dict[str, tuple[float, float, float, float]] = {
    "insensitive": (1.0, 1.0, 1.0, 1.02),
    "mild": (1.0, 1.05, 1.15, 1.25),
    "vgg-like": (1.0, 1.1, 1.29, 1.5),
    "heavy": (1.0, 1.1, 1.4, 1.9),
}
DEFAULT_PROFILE = "mild"
# Themis classifies VGG, Inception, and language and speech models (heavy). The rest is this project's estimate.
PROFILE_BY_MODEL: dict[str, str] = {
    "inceptionv3": "insensitive",
    "a3c": "insensitive",
    "a2c": "insensitive",
    "dqn": "insensitive",
    "resnet": "mild",
    "mobilenet": "mild",
    "shufflenet": "mild",
    "cyclegan": "mild",
    "yolov3": "mild",
    "stablediffusion": "mild",
    "vgg": "vgg-like",
    "alexnet": "vgg-like",
    "transformer": "heavy",
    "lm": "heavy",
    "biattflow": "heavy",
    "bert": "heavy",
    "gpt": "heavy",
    "llama": "heavy",
    "gnmt": "heavy",
    "deepspeech": "heavy",
    "wavenet": "heavy",
    "ncf": "heavy",
    "recommendation": "heavy",
}
TWO_SERVERS = 114.8 / 98.0  # Philly, Table 4
SPREAD = ((1.0, 1.0), (2.0, 43.66 / 40.94), (4.0, 43.66 / 28.56))  # Table 5: servers over the fewest, slowdown


class Placement(Protocol):
    """A source of slowdowns by place."""

    @property
    def name(self) -> str: ...

    def slowdown(
        self, kind: Kind, type: int, place: PlacementSpan, best: PlacementSpan, partner: str | None = None
    ) -> float:
        """Return the factor on the step time on a type at a place, relative to the best place; at least 1.

        With a partner that of a gang beside it; tables that know none have one factor for both.
        """
        ...


def profile_of(job_type: str) -> tuple[float, float, float, float]:
    """Return Themis' slowdowns by level: of the longest known prefix of the model's name, else the mild ones."""
    model = model_of(job_type)
    known = max((name for name in PROFILE_BY_MODEL if model.startswith(name)), key=len, default="")
    return PROFILES[PROFILE_BY_MODEL.get(known, DEFAULT_PROFILE)]


def across_racks(job_type: str, place: PlacementSpan, best: PlacementSpan) -> float:
    """Return the slowdown of leaving the rack, for tables by machine only: Themis' last step, modelled."""
    profile = profile_of(job_type)
    return profile[PlacementLevel.ACROSS] / profile[PlacementLevel.RACK] if place.racks > 1 >= best.racks else 1.0


@dataclass(frozen=True, slots=True)
class ThemisSlowdowns:
    """Themis' table."""

    name: str = "themis"

    def slowdown(
        self, kind: Kind, type: int, place: PlacementSpan, best: PlacementSpan, partner: str | None = None
    ) -> float:
        """Return S at the level of the place over S at the best level."""
        profile = profile_of(kind[0])
        return max(profile[place.level] / profile[best.level], 1.0)


@dataclass(frozen=True, slots=True)
class PhillySlowdowns:
    """Philly's tables: the measurement of one model for all. Across racks as in Themis' table."""

    name: str = "philly"

    def slowdown(
        self, kind: Kind, type: int, place: PlacementSpan, best: PlacementSpan, partner: str | None = None
    ) -> float:
        """Return the slowdown of the place's servers relative to the fewest."""
        nodes = self._by_servers(place.nodes, best.nodes) / self._by_servers(best.nodes, best.nodes)
        return nodes * across_racks(kind[0], place, best)

    def _by_servers(self, nodes: int, fewest: int) -> float:
        """Return the slowdown relative to one server; log-linear between and beyond the points of Table 5."""
        if nodes <= 1:
            return 1.0
        ratio, factor = elementary.log(np.array(SPREAD)).T
        at = elementary.log(max(nodes / max(fewest, 2), 1.0))
        return TWO_SERVERS * elementary.exp(float(interpolate(at, ratio, factor)))
