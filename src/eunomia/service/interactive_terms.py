"""The table [interactive] of a site: for how long terminals and notebooks may run, and may be idle."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from eunomia.inputs.bounds import MOST_S
from eunomia.scenario.schema_models import Finite, Section

Seconds = Annotated[Finite, Field(ge=0, le=MOST_S)]


class InteractiveSection(Section):
    """What holds for terminals (`eunomia shell`) and notebooks (`eunomia notebook`)."""

    longest_s: Annotated[Finite, Field(ge=1, le=MOST_S)] = Field(
        default=43_200.0, description="longest time of an interactive job, and that of one that names none"
    )
    idle_warn_s: Seconds = Field(default=3600.0, description="seconds after which an idle one is named; 0 = never")
    idle_end_s: Seconds = Field(default=28_800.0, description="seconds after which an idle one is ended; 0 = never")

    def describe(self) -> str:
        """Return it in words."""
        named = f"named when idle for {self.idle_warn_s:g} s, " if self.idle_warn_s else ""
        ended = f"ended when idle for {self.idle_end_s:g} s" if self.idle_end_s else "not ended for being idle"
        return f"terminals and notebooks run for at most {self.longest_s:g} s, are {named}and {ended}"
