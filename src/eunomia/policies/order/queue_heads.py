"""The heads of several queues, the one whose queue would borrow least first."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping

from eunomia.policies.order.borrowing_group import BorrowingGroup


class QueueHeads:
    """Jobs that wait, by queue; of equals the earlier row is first. `moved` tells of queues whose use has changed."""

    def __init__(self, lines: Mapping[int, deque[int]], cohort: BorrowingGroup):
        self._lines, self._cohort = lines, cohort
        self._word = dict.fromkeys(lines, 0)  # queue -> number of the entry that counts
        self._heap: list[tuple[float, int, int, int]] = []  # share with its head, head, queue, number
        self.moved(lines)

    def moved(self, queues: Iterable[int]) -> None:
        """Look again at what these queues would borrow."""
        for u in queues:
            if self._lines.get(u):
                head = self._lines[u][0]
                self._word[u] += 1
                share = self._cohort.share(u, float(self._cohort.size[head]))
                heapq.heappush(self._heap, (share, head, u, self._word[u]))

    def pop(self) -> int:
        """Take the next job out of its queue and return it; -1 = nobody is left."""
        while self._heap:
            _, head, u, word = heapq.heappop(self._heap)
            if word == self._word[u]:
                self._lines[u].popleft()
                self._word[u] += 1
                self.moved((u,))
                return head
        return -1
