"""A stable sort for kernels; numba's own takes a second to compile."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints

_RUN = 16  # length of the runs that are sorted by insertion and then merged


@kernel(allocates=False)
def sort_into(key: Floats | Ints, count: int, order: Ints, scratch: Ints) -> None:
    """Write the stable ascending order of the first `count` keys, none NaN, into `order`.

    order, scratch: (count,) or longer.
    """
    for begin in range(0, count, _RUN):
        for i in range(begin, min(begin + _RUN, count)):
            j = i - 1
            while j >= begin and key[order[j]] > key[i]:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = i
    width = _RUN
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for place in range(begin, end):
                if right >= end or (left < middle and key[order[left]] <= key[order[right]]):
                    scratch[place] = order[left]
                    left += 1
                else:
                    scratch[place] = order[right]
                    right += 1
        for place in range(count):
            order[place] = scratch[place]
        width *= 2


@kernel()
def sorted_places(key: Floats | Ints) -> Ints:
    """Return the stable ascending order of the keys; none is NaN."""
    order, scratch = np.empty(len(key), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    sort_into(key, len(key), order, scratch)
    return order
