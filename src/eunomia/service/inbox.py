"""What has arrived for the writer, from any thread: who takes its turn next, and how much one turn takes."""

from __future__ import annotations

import threading
import time
from typing import Generic, TypeVar

from eunomia.service.fair_queue import FairQueue

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue of two classes: what is urgent comes first, and a turn still takes something of the rest.

    In both, owners take turns. A turn takes at most so much, or one thing that is larger.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._urgent: FairQueue[T] = FairQueue()
        self._rest: FairQueue[tuple[T, int]] = FairQueue()
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._urgent) + len(self._rest)

    def put(self, item: T, owner: str, *, size: int = 1, is_urgent: bool = False) -> None:
        """Add something of an owner; `size` counts what it is to a turn."""
        with self._changed:
            if is_urgent:
                self._urgent.put(owner, item)
            else:
                self._rest.put(owner, (item, size))
            self._changed.notify()

    def put_back(self, item: T, owner: str, size: int) -> None:
        """Add what goes on in the owner's next turn, before all else that the owner has put there."""
        with self._changed:
            self._rest.put_back(owner, (item, size))
            self._changed.notify()

    def stop(self) -> None:
        """Let `take` say that the end has come once all has been taken."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def take(self, wait_s: float, most: int) -> tuple[list[T], bool]:
        """Wait for something; return what one turn takes, and whether to go on."""
        deadline = time.monotonic() + wait_s
        with self._changed:
            while not len(self) and not self._is_stopped:
                if not self._changed.wait(deadline - time.monotonic()):
                    return [], True
            found = [self._urgent.pop() for _ in range(min(len(self._urgent), most))]
            taken = 0
            while len(self._rest) and (not taken or taken + self._rest.head()[1] <= most):
                item, size = self._rest.pop()
                found.append(item)
                taken += size
            return found, bool(len(self)) or not self._is_stopped
