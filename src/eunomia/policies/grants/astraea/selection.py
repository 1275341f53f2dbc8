"""The keys by which a tenant's jobs are ranked, the lowest first.

| selection | keys |
| --- | --- |
| fairness | ρ, submission |
| disc_fairness | class of ρ, submission |
| job_reward | class of ρ, −P / z, submission |
| themis | −life / (t ρ + (life − t) + remaining), −1 where nothing is deserved yet |
| 2das | t, submission |
| smallestfirst | z, submission |
| shortestremainfirst | remaining, submission |
| fifo | submission |
| random | a draw |

ρ long-term fairness, t seconds run, life seconds since its submission (pauses included), z scale
factor, P the chance to end within the next lease.

P is counted from the accelerator-seconds of all jobs that have ended, whatever their width. The published artifact
means to take the durations of jobs of the same width, in bins of a lease, and never builds them: there P is 1, and the
least wide job of a class is first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rounded

Selection = Literal[
    "fairness",
    "disc_fairness",
    "job_reward",
    "themis",
    "2das",
    "smallestfirst",
    "shortestremainfirst",
    "fifo",
    "random",
]
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
FAIR = frozenset({"fairness", "disc_fairness", "job_reward", "themis"})  # may interrupt fresh leases for new jobs
ORACLE = frozenset({"themis", "shortestremainfirst"})  # read what jobs still need
CLASSES = 5
Column = Floats | Ints  # (job,)
Keys = tuple[Column, ...]  # the most important first


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionInputs:
    """The columns that keys are made of, (job,) each."""

    submitted: Column
    size: Ints  # accelerators
    fairness: Floats  # ρ; 0 where nothing is deserved yet
    is_new: Bools  # nothing is deserved yet
    ran: Column  # seconds
    life: Column  # seconds since its submission
    remaining: Column  # seconds; only read by ORACLE
    chance: Floats  # P; only read by job_reward
    draw: Column  # places of a random order; only read by random


def classes(fairness: Floats) -> Floats:
    """Return classes of ρ: 0 = got nothing, 1 = starved, 3 = fair, 5 = over-served."""
    some = fairness > 0
    log = elementary.log(np.where(some, fairness, 1.0))
    lack = -log / np.sqrt(1 + log * log)
    return np.where(some, np.trunc(CLASSES - np.floor_divide((lack + 1) / 2, 1.0 / CLASSES)), 0.0)


def chances(past: Floats, used: Floats, more: Floats) -> Floats:
    """Return P, (job,): of the jobs that ended and used more than this one has, the part that used at most `more`.

    All in accelerator-seconds; 1 where no job used more.
    """
    ended = np.sort(past)
    below, within = (np.searchsorted(ended, amount, side="right") for amount in (used, used + more))
    longer = len(ended) - below
    chance: Floats = np.divide(within - below, longer, out=np.ones(len(used)), where=longer > 0)
    return chance


def finish_time_fairness(known: SelectionInputs) -> Floats:
    """Return the life so far over what finishing would take alone on what was deserved; 1 for a new job."""
    alone = known.ran * known.fairness + (known.life - known.ran) + known.remaining
    rho: Floats = np.divide(known.life, alone, out=np.ones(len(alone)), where=~known.is_new & (alone > 0))
    return rho


KEYS: Mapping[Selection, Callable[[SelectionInputs], Keys]] = {
    "fairness": lambda known: (known.fairness, known.submitted),
    "disc_fairness": lambda known: (classes(known.fairness), known.submitted),
    "job_reward": lambda known: (classes(known.fairness), -known.chance / known.size, known.submitted),
    "themis": lambda known: (-finish_time_fairness(known),),
    "2das": lambda known: (known.ran, known.submitted),
    "smallestfirst": lambda known: (known.size, known.submitted),
    "shortestremainfirst": lambda known: (known.remaining, known.submitted),
    "fifo": lambda known: (known.submitted,),
    "random": lambda known: (known.draw,),
}


def ranked(keys: Keys) -> Ints:
    """Return the jobs in order of these keys; ties stay as they stand."""
    return np.lexsort([rounded(key) for key in keys[::-1]])


def line_up(keys: Keys, submitted: Column, starving: Bools, tenant: Ints) -> Ints:
    """Return the jobs tenant by tenant, in each the starving ones by submission, then the others by their keys."""
    n = len(tenant)
    place = np.empty(n, dtype=np.int64)
    place[ranked(keys)] = np.arange(n)
    oldest = np.empty(n, dtype=np.int64)
    oldest[np.argsort(submitted, kind="stable")] = np.arange(n)
    return np.lexsort((np.where(starving, oldest, place), ~starving, tenant))
