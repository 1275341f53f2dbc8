"""A queue in which each owner has its turn, however much others have put there."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """First come, first served for each owner; the next item is of the owner who was served longest ago."""

    def __init__(self) -> None:
        self._items: dict[Hashable, deque[T]] = {}  # by owner, in the order of their turns
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, owner: Hashable, item: T) -> None:
        """Add an item."""
        self._items.setdefault(owner, deque()).append(item)
        self._count += 1

    def put_back(self, owner: Hashable, item: T) -> None:
        """Add an item before all others of its owner, whose next turn comes after those of all others."""
        items = self._items.pop(owner, deque())
        items.appendleft(item)
        self._items[owner] = items
        self._count += 1

    def head(self) -> T:
        """Return the next item. Raises IndexError if there is none."""
        for items in self._items.values():
            return items[0]
        raise IndexError("the queue is empty")

    def pop(self) -> T:
        """Remove and return the next item. Raises IndexError if there is none."""
        found = self.head()
        owner = next(iter(self._items))
        items = self._items.pop(owner)
        items.popleft()
        if items:
            self._items[owner] = items  # its next turn comes after those of all others
        self._count -= 1
        return found

    def count_of(self, owner: Hashable) -> int:
        """Return how many items of an owner are there."""
        return len(self._items.get(owner, ()))
