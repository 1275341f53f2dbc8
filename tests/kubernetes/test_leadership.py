"""Of several services in a namespace one acts: the Lease on the real API server."""

from __future__ import annotations

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
from lightkube import Client
from lightkube.resources.coordination_v1 import Lease
from tests.kubernetes.conftest import HandClock

from eunomia.backends.engines.engine import EngineAway
from eunomia.backends.kubernetes.leadership import LENGTH_S, NAME, Leadership


def test_another_service_acts_when_the_first_gives_the_lease_back_or_renews_it_no_more(
    client: Client, clock: HandClock
) -> None:
    one, same, other = (Leadership(client, clock) for _ in range(3))
    one.keep("one")
    same.keep("one")  # after a kill: the folder of jobs is the holder
    with pytest.raises(EngineAway, match="'one' acts in this namespace"):
        other.keep("other")
    clock.at += LENGTH_S / 2
    one.keep("one")
    clock.at += LENGTH_S - 1
    with pytest.raises(EngineAway, match="'one'"):  # it has renewed since
        other.keep("other")
    clock.at += LENGTH_S
    other.keep("other")
    with pytest.raises(EngineAway, match="'other'"):
        one.keep("one")
    one.release()  # not its own any more
    assert client.get(Lease, NAME).spec.holderIdentity == "other"
    other.release()
    one.keep("one")
    one.release()
