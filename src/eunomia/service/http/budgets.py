"""What each tenant may use of the service, so that something is always left for the others."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

DAY_S = 86_400.0
KEPT_PLACES = 16  # of connections, for operators
MOST_BODY_BYTES = 256 * 2**20  # of bodies that are being received, of all
MOST_BODY_BYTES_EACH = 64 * 2**20  # and of one tenant

MOST_SESSIONS = 64  # streams of one user to terminals and notebooks

MOST_LARGE = 2  # large submissions of a tenant that are read or waited for: one is entered, the next one is ready


@dataclass(slots=True)
class Bucket:
    """A token bucket. What is taken may be more than there is: then it stays empty until that is made up for."""

    rate: float
    burst: float
    level: float
    at: float

    def wait_s(self, now: float) -> float:
        """Return 0 if something can be taken, or the seconds until then."""
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        return 0.0 if self.level >= 1.0 else (1.0 - self.level) / self.rate

    def take(self, now: float, count: float = 1.0) -> float:
        """Take so much; return 0, or the seconds until something can be taken."""
        wait_s = self.wait_s(now)
        if wait_s == 0:
            self.level -= count
        return wait_s


class Places:
    """Requests and streams that are being answered. `room` returns how many there may be.

    A tenant may have as many as are still free. So one alone has half of them, two have a third each, and there are
    always some for a further one. Operators may have all.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room
        self._taken: Counter[str] = Counter()

    def take(self, tenant: str, *, is_operator: bool = False) -> bool:
        """Take a place, which `leave` gives back; False if there is none for this tenant."""
        free = self._room() - self._taken.total()
        if not is_operator and self._taken[tenant] >= max(free - KEPT_PLACES, 1):
            return False
        self._taken[tenant] += 1
        return True

    def leave(self, tenant: str) -> None:
        """Give a place back."""
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]


class BodyBytes:
    """Bytes of bodies that are being received, by tenant."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def take(self, tenant: str, count: int) -> bool:
        """Hold further bytes, which are given back with a negative count; False if there is no room for them."""
        if count > 0 and (
            self._held[tenant] + count > MOST_BODY_BYTES_EACH or self._held.total() + count > MOST_BODY_BYTES
        ):
            return False
        self._held[tenant] += count
        if not self._held[tenant]:
            del self._held[tenant]
        return True


class LargeSubmissions:
    """Large submissions from their reading to their reply: a few of each tenant, as their documents fill memory."""

    def __init__(self) -> None:
        self._of = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(MOST_LARGE))

    def place(self, tenant: str) -> asyncio.Semaphore:
        """Return what one holds meanwhile."""
        return self._of[tenant]


@dataclass(slots=True)
class Submissions:
    """How many jobs tenants submit a second, and how many bytes of documents a day."""

    jobs: dict[str, Bucket] = field(default_factory=dict)
    bytes: dict[str, Bucket] = field(default_factory=dict)

    def wait_s(self, tenant: str, rate: float, bytes_a_day: float) -> tuple[float, float]:
        """Return the seconds until the tenant may submit again, for its jobs and for its bytes; 0 = now."""
        now = time.monotonic()
        jobs = self.jobs.setdefault(tenant, Bucket(rate, 10 * rate, 10 * rate, now))
        stored = self.bytes.setdefault(tenant, Bucket(1.0, bytes_a_day, bytes_a_day, now))
        jobs.rate, jobs.burst = rate, max(10 * rate, 1.0)  # an operator may change them
        stored.rate, stored.burst = bytes_a_day / DAY_S, bytes_a_day
        return jobs.wait_s(now), stored.wait_s(now)

    def charge(self, tenant: str, jobs: int, stored_bytes: int) -> None:
        """Take what a submission asks for, whatever becomes of it; `wait_s` has been asked before."""
        self.jobs[tenant].level -= jobs
        self.bytes[tenant].level -= stored_bytes


def seconds(wait_s: float) -> int:
    """Return a time for Retry-After: whole seconds, at least 1."""
    return max(math.ceil(wait_s), 1)
