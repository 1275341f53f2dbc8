"""The contract of every policy, as pytest tests. Subclass `PolicyContract` once for each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from eunomia.model.answers import Answer
from eunomia.model.policy import LeaseTerms
from eunomia.model.view import View
from eunomia.testing import policy_rules as rules
from eunomia.testing.policy_rules import LEASE_TERMS, SEEDS


class PolicyContract:
    """Contract tests of one policy: subclass it as Test… and set `policy`. `eunomia check` runs the same rules.

    `row_order_decides` is the reason, if any, why the order of rows changes the answer even without ties: the policy
    uses the order of submission, or draws random numbers row by row.
    """

    policy: ClassVar[Any]
    row_order_decides: ClassVar[str] = ""

    def worth(self, view: View, answer: Answer) -> Any:
        """Return the numbers that a permutation of jobs must not change; override if the optimum is not unique."""
        return rules.comparable(answer)

    def refused(self) -> Sequence[Mapping[str, Any]]:
        """Return invalid parameters; by default one unknown word or invalid number for each field."""
        return rules.bad_parameters(type(self.policy))

    def test_the_same_view_gets_the_same_answer(self) -> None:
        for seed in SEEDS:
            rules.check_pure(self.policy, seed)

    def test_an_answer_leaves_the_view_as_it_was(self) -> None:
        for seed in SEEDS:
            rules.check_view_unchanged(self.policy, seed)

    def test_jobs_in_another_order_get_the_same(self) -> None:
        if self.row_order_decides:
            pytest.skip(self.row_order_decides)
        for seed in SEEDS:
            rules.check_row_order(self.policy, seed, self.worth)

    def test_every_column_it_needs_is_listed_and_another_is_refused_by_name(self) -> None:
        rules.check_columns(self.policy, 0)

    def test_the_memory_survives_being_written_down(self) -> None:
        for seed in SEEDS:
            rules.check_memory(self.policy, seed)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_an_answer_fits_the_view(self, seed: int) -> None:
        rules.check_fits(self.policy, seed)

    def test_what_it_promises_of_its_order_holds(self) -> None:
        for seed in SEEDS:
            rules.check_promises(self.policy, seed)

    def test_an_empty_view_is_answered(self) -> None:
        rules.check_empty(self.policy, 0)

    def test_parameters_out_of_range_are_refused_by_name(self) -> None:
        rules.check_parameters(self.policy, self.refused())

    @pytest.mark.parametrize(("seed", "terms"), list(enumerate(LEASE_TERMS)))
    def test_a_run_ends_however_time_is_cut_and_one_cause_makes_at_most_two_asks(
        self, seed: int, terms: LeaseTerms
    ) -> None:
        rules.check_asks(self.policy, seed, terms)

    def test_a_job_that_cannot_save_is_never_stopped(self) -> None:
        rules.check_held_jobs(self.policy, 5)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_small_world_ends_with_every_job_done(self, seed: int) -> None:
        rules.check_world(self.policy, seed)
