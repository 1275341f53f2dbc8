"""What the service knows of a job before it runs: its job type, and where it may run."""

from __future__ import annotations

import math
from typing import NamedTuple


class JobKind(NamedTuple):
    """Jobs of one kind are believed to behave alike.

    To the core a job type is a key that it compares and stores: in moments, records, snapshots and views a kind of the
    service is the text of `str`, which `Job.job_type` holds. Its parts are read where throughputs are looked up, once
    for each kind and size, and where they are learnt.
    """

    job_type: str  # "" = the job names none
    types: tuple[str, ...] = ()  # accelerator types that it names; () = it names none
    memory_gib: float = math.nan  # that it needs on each accelerator; nan = not known

    def __str__(self) -> str:
        memory = "" if math.isnan(self.memory_gib) else f"{self.memory_gib:g}"
        text = f"{self.job_type}|{','.join(self.types)}|{memory}"
        return text if "|" in self.job_type else text.rstrip("|")  # a job type with the sign keeps all three parts

    @classmethod
    def of(cls, text: str) -> JobKind:
        """Return the kind of a text that `str` made."""
        name, types, memory = (*text.rsplit("|", 2), "", "")[:3]
        return cls(name, tuple(types.split(",")) if types else (), float(memory) if memory else math.nan)
