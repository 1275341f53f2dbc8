"""Names of policies in other systems: the policy and its parameters here."""

from __future__ import annotations

from typing import Any

_SHARED: dict[str, Any] = {"space_sharing": True}
_AGNOSTIC: dict[str, Any] = {"types": "agnostic"}
_AS_V100: dict[str, Any] = {**_AGNOSTIC, "reference_type": "v100"}  # the artifact's agnostic speed of remaining steps

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "max_min_fairness_agnostic": ("max_min_fairness", _AGNOSTIC),
    "tiresias-l": ("tiresias", {}),
    "tiresias-g": ("tiresias", {"index": "gittins"}),
    "gavel:max_min_fairness": ("max_min_fairness", _AGNOSTIC),
    "gavel:max_min_fairness_perf": ("max_min_fairness", {}),
    "gavel:max_min_fairness_packed": ("max_min_fairness", _SHARED),
    "gavel:max_min_fairness_water_filling": ("water_filling", _AGNOSTIC),
    "gavel:max_min_fairness_water_filling_perf": ("water_filling", {}),
    "gavel:max_min_fairness_water_filling_packed": ("water_filling", _SHARED),
    "gavel:max_min_fairness_strategy_proof": ("strategy_proof", {}),
    "gavel:finish_time_fairness": ("finish_time_fairness", _AS_V100),
    "gavel:finish_time_fairness_perf": ("finish_time_fairness", {}),
    "gavel:finish_time_fairness_packed": ("finish_time_fairness", {**_SHARED, "weighted_speeds": True}),
    "gavel:min_total_duration": ("makespan", _AS_V100),
    "gavel:min_total_duration_perf": ("makespan", {}),
    "gavel:min_total_duration_packed": ("makespan", _SHARED),
    "gavel:max_sum_throughput_perf": ("max_throughput", {"normalised": False}),
    "gavel:max_sum_throughput_normalized_by_cost_perf": ("throughput_per_cost", {"objective": "sum"}),
    "gavel:max_sum_throughput_normalized_by_cost_perf_SLOs": (
        "throughput_per_cost",
        {"objective": "sum", "deadlines": True},
    ),
    "gavel:max_sum_throughput_normalized_by_cost_packed_SLOs": (
        "throughput_per_cost",
        {"objective": "sum", "deadlines": True, **_SHARED},
    ),
    "gavel:isolated": ("isolated", {}),
    "gavel:proportional": ("proportional", {}),
    "gavel:fifo": ("fifo", _AGNOSTIC),
    "gavel:fifo_perf": ("fifo", {}),
    "gavel:fifo_packed": ("fifo_packed", {}),
    "gavel:allox": ("allox", {"queues": "machines"}),
    "gavel:gandiva": ("gandiva", {"gain": "sum"}),
}

# What a preset sets of a mechanism, by the mechanism's name. Gavel draws the order of types anew in each round for the
# policies that do not read throughputs, which it tells by their names.
_SHUFFLED: dict[str, dict[str, Any]] = {"gavel": {"shuffled": True}}
PRESET_MECHANISMS: dict[str, dict[str, dict[str, Any]]] = {
    "gavel:max_min_fairness": _SHUFFLED,
    "gavel:max_min_fairness_water_filling": _SHUFFLED,
    "gavel:finish_time_fairness": _SHUFFLED,
    "gavel:min_total_duration": _SHUFFLED,
    "gavel:isolated": _SHUFFLED,
    "gavel:fifo": _SHUFFLED,
}
