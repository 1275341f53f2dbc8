"""When a run is over though machines go on to fail: nobody sits, and nobody is seated whichever machines are there."""

from __future__ import annotations

MOST = 10_000  # moments that are waited for in vain while some machine or other is always away


class Stillness:
    """Counts moments in a row after which nobody sits and nothing is to come but machines that go and come back."""

    def __init__(self) -> None:
        self._moments = 0

    def is_final(self, machines_only: bool, away: int) -> bool:
        """Say whether those that wait will wait for ever, after a moment that left so many machines away.

        Who is not seated with all machines there will not be with fewer. Where all are never there at once it is
        given up after `MOST` moments.
        """
        self._moments = self._moments + 1 if machines_only else 0
        return machines_only and (away == 0 or self._moments >= MOST)
