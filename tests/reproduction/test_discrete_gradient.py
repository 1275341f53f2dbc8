"""The published gradient by sampling is that of full inference, which is that of small differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eunomia_reproduction.symphony.discrete_gradient import DiscreteNetwork, DiscreteNode, inference, sampled


def network_of(seed: int) -> DiscreteNetwork:
    """Return the polytree a → c ← b, c → d ← e, with 2 to 4 values a node."""
    rng, sizes = np.random.default_rng(seed), {"a": 2, "b": 3, "c": 4, "e": 2, "d": 3}
    parents = {"a": (), "b": (), "c": ("a", "b"), "e": (), "d": ("c", "e")}
    return {
        name: DiscreteNode(parents[name], rng.normal(size=(*(sizes[one] for one in parents[name]), size)))
        for name, size in sizes.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_sampled_gradient_of_a_polytree_is_that_of_full_inference_within_two_per_cent(seed: int) -> None:
    network = network_of(seed)
    exact = inference(network, "d")
    found = sampled(network, "d", np.random.default_rng(seed), 40_000)
    largest = max(np.abs(one).max() for one in exact.values())
    for name in network:
        np.testing.assert_allclose(found[name], exact[name], atol=0.02 * largest, err_msg=name)


def test_full_inference_gives_the_slope_of_small_differences() -> None:
    network, step = network_of(1), 1e-6

    def chance_of_first(logits: np.ndarray) -> float:
        changed = {**network, "b": replace(network["b"], logits=logits)}
        a, b, c, e, d = (changed[name].chances() for name in ("a", "b", "c", "e", "d"))
        return float(sum(
            a[i] * b[j] * c[i, j, k] * e[m] * d[k, m, 0]
            for i in range(2) for j in range(3) for k in range(4) for m in range(2)
        ))  # fmt: skip

    for value in range(3):
        nudge = step * (np.arange(3) == value)
        slope = (chance_of_first(network["b"].logits + nudge) - chance_of_first(network["b"].logits - nudge)) / step / 2
        assert inference(network, "d")["b"][0, value] == pytest.approx(slope, rel=1e-5)


def test_parents_that_depend_on_each_other_are_refused() -> None:
    fork = {"n": DiscreteNode((), np.zeros(2)), "a": DiscreteNode(("n",), np.zeros((2, 2))),
            "c": DiscreteNode(("n", "a"), np.zeros((2, 2, 2)))}  # fmt: skip
    with pytest.raises(ValueError, match="more than one path"):
        sampled(fork, "c", np.random.default_rng(0), 10)
