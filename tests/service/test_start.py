"""What a start leaves behind in the process."""

from __future__ import annotations

import gc

import pytest

pytest.importorskip("uvicorn", reason='needs the extra: pip install "eunomia[service]"')
from eunomia.service.server import _without_collection


def test_what_a_start_makes_is_not_looked_at_again_and_the_collector_goes_on() -> None:
    before = gc.get_freeze_count()
    try:
        with _without_collection():
            assert not gc.isenabled()
            kept = [[n] for n in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(kept)
        with pytest.raises(ZeroDivisionError), _without_collection():
            1 / 0  # noqa: B018
        assert gc.isenabled()
    finally:
        gc.unfreeze()
