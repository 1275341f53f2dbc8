"""The books: what is so, what was received and what is believed, changed together and in one place."""

from __future__ import annotations

from collections.abc import Mapping

from eunomia.core.belief import Belief
from eunomia.core.ledger import Ledger
from eunomia.core.state import State
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.life import Cause
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology


class Books:
    """State, ledger and belief of one scheduler. `changes` counts what came or went, but not who was seated."""

    def __init__(
        self,
        topology: Topology,
        belief: Belief,
        price: Floats | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ):
        self.state, self.ledger, self.belief = State(topology, price, tenants), Ledger(len(topology.types)), belief
        self.changes = 0

    def submit(self, job: Job) -> None:
        """Open the books for a new job."""
        self.state.add(job)
        self.ledger.add()
        self.belief.learn(job)
        self.changes += 1

    def start(self, row: int, at: float, type: int, shape: int, seats: Ints, until: float, partner: int) -> None:
        """Give seats that the floor has taken to one job, or to two that share them."""
        ran = self.state.jobs.ran
        for job, mate in [(row, partner)] if partner < 0 else [(row, partner), (partner, row)]:
            self.ledger.start(job, at, len(seats), type)
            self.belief.start(job, at, type, len(seats), mate, first=not ran[job])
        self.state.start(row, type, shape, seats, until, partner)

    def leave(self, row: int, at: float, cause: Cause) -> None:
        """Take a job off its seats, if it has any; a partner goes on alone."""
        jobs = self.state.jobs
        if jobs.on_type[row] >= 0:
            mate, type, seats = int(jobs.partner[row]), int(jobs.on_type[row]), len(self.state.seats[row])
            self.ledger.stop(row, at)
            self.belief.stop(row, at)
            if mate >= 0:
                self.belief.go_alone(mate, at, type, seats)
        self.state.leave(row, cause)
        self.changes += cause is not Cause.STOPPED

    def lose(self, node: int) -> None:
        """A node is gone; its gangs have left."""
        self.state.lose(node)
        self.changes += 1

    def restore(self, node: int) -> None:
        """A lost node is back."""
        self.state.restore(node)
        self.changes += 1
