"""When a run is over though something always goes on: nobody sits, and nobody is seated whatever else may happen."""

from __future__ import annotations

MOST = 10_000  # moments that are waited for in vain while some machine or other is away
MOST_ASKED = 1_000  # and while all are there, and the scheduler wants to be woken


class Stillness:
    """Counts moments in a row after which nobody sits and no job is to come.

    What goes on then are machines that go and come back, and policies that want to be asked again.
    """

    def __init__(self) -> None:
        self._moments = 0

    def is_final(self, still: bool, away: int, wakes: bool) -> bool:
        """Say whether those that wait will wait for ever, after a moment.

        `still`: nobody sits and nobody is to come; `away` machines that are; `wakes`: the scheduler will be woken. Who
        is not seated with all machines there will not be with fewer, and nothing else is new.
        """
        self._moments = self._moments + 1 if still else 0
        return still and self._moments >= (MOST if away else MOST_ASKED if wakes else 0)
