"""What Gavel's clock can be set to. The defaults are its own."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_VISIT = ("v100", "p100", "k80")


@dataclass(frozen=True, slots=True, kw_only=True)
class GavelRounds:
    """The round mechanism of Gavel's simulator, each of its oddities a field.

    `round_s` longest round; it ends when its last gang has done its steps. `solve_gap_s` least time between two
    questions to the policy. `credit_s` time that a new job, and everybody at a question, is said to have received on
    each type; None = half a round. `visit` types in the order in which they are filled: one that is not named is never
    used; () = all in the cluster's order. `shuffled` draws that order anew for each round. `fill` lets jobs without a
    share there have what is left over. `pairs` keeps books on every pair of jobs of one size. `global_queue` makes one
    list of all types instead of one each. `overtake` lets narrower gangs pass one that does not fit. `sticky` leaves a
    gang where it sat in the round before. `idle_arrivals` lets jobs that the last answer does not know take seats and
    leave them idle; else they run in what is left over. `charge_gaps` counts idle time before a round as
    received. `most_failures` rounds in a row in which a worker of the gang had no step to do, after which a job is
    dropped; 0 = never: a step is then a fraction. `expected` jobs in all, 0 = unknown: with none left to come and
    nobody running the policy is asked at once.
    Raises ValueError for lengths that are not above 0.
    """

    round_s: float = 360.0
    solve_gap_s: float = 1920.0
    credit_s: float | None = None
    visit: tuple[str, ...] = DEFAULT_VISIT
    shuffled: bool = False
    fill: bool = True
    pairs: bool = False
    global_queue: bool = False
    overtake: bool = True
    sticky: bool = True
    idle_arrivals: bool = True
    charge_gaps: bool = True
    most_failures: int = 5
    expected: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.round_s < float("inf"):
            raise ValueError(f"round_s is {self.round_s}; a round lasts longer than 0 s and ends")
        if not self.solve_gap_s >= 0:
            raise ValueError(f"solve_gap_s is {self.solve_gap_s}; it is at least 0")
        if self.credit_s is not None and not 0 <= self.credit_s < float("inf"):
            raise ValueError(f"credit_s is {self.credit_s}; it is at least 0 and finite")
        if self.most_failures < 0 or self.expected < 0:
            raise ValueError("most_failures and expected are at least 0")

    @property
    def credit(self) -> float:
        """Seconds that everybody is said to have received when counting begins."""
        return self.round_s / 2.0 if self.credit_s is None else self.credit_s
