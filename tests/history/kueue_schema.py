"""The fields of Kueue's objects by its published types of v1beta2 (`apis/kueue/v1beta2/*_types.go`), and a check.

A pod's template is Kubernetes' own, whose schema the client's models have (`tests/kubernetes/test_schemas.py`).
"""

from __future__ import annotations

from typing import Any

ANY = object()  # not looked into
QUANTITY = (str, int)
FLAVOR = {"name": str, "resources": [{"name": str, "nominalQuota": QUANTITY, "borrowingLimit": QUANTITY,
                                      "lendingLimit": QUANTITY}]}  # fmt: skip
SPECS: dict[str, Any] = {
    "Workload": {
        "podSets": [{"name": str, "template": ANY, "count": int, "minCount": int, "topologyRequest": ANY}],
        "queueName": str, "priorityClassRef": ANY, "priority": int, "active": bool, "maximumExecutionTimeSeconds": int,
    },
    "ClusterQueue": {
        "resourceGroups": [{"coveredResources": [str], "flavors": [FLAVOR]}], "cohortName": str,
        "queueingStrategy": str, "namespaceSelector": ANY, "flavorFungibility": ANY, "preemption": ANY,
        "admissionChecksStrategy": ANY, "stopPolicy": str, "fairSharing": ANY, "admissionScope": ANY,
        "concurrentAdmissionPolicy": ANY,
    },
    "LocalQueue": {"clusterQueue": str, "stopPolicy": str, "fairSharing": ANY, "wallTimePolicy": ANY},
}  # fmt: skip
ASSIGNMENT = {"name": str, "flavors": ANY, "resourceUsage": ANY, "count": int, "topologyAssignment": ANY,
              "delayedTopologyRequest": str}  # fmt: skip
STATUS = {
    "conditions": [{**dict.fromkeys(("type", "status", "reason", "message", "lastTransitionTime"), str),
                    "observedGeneration": int}],
    "admission": {"clusterQueue": str, "podSetAssignments": [ASSIGNMENT]}, "requeueState": ANY,
    "reclaimablePods": [{"name": str, "count": int}], "admissionChecks": ANY, "resourceRequests": ANY,
    "accumulatedPastExecutionTimeSeconds": int, "schedulingStats": ANY, "nominatedClusterNames": [str],
    "clusterName": str, "unhealthyNodes": ANY,
}  # fmt: skip


def wrong_fields(item: dict[str, Any]) -> list[str]:
    """Return the fields of spec and status that the types do not have, or have with another type."""
    found = _wrong(item["spec"], SPECS[item["kind"]], "spec")
    return found + (_wrong(item["status"], STATUS, "status") if item["kind"] == "Workload" else [])


def _wrong(value: Any, schema: Any, at: str) -> list[str]:
    if schema is ANY:
        return []
    if isinstance(schema, list) and isinstance(value, list):
        return [found for one in value for found in _wrong(one, schema[0], f"{at}[]")]
    if isinstance(schema, dict) and isinstance(value, dict):
        known = [
            found for key in value.keys() & schema.keys() for found in _wrong(value[key], schema[key], f"{at}.{key}")
        ]
        return [f"{at}.{key}" for key in value.keys() - schema.keys()] + sorted(known)
    return [] if isinstance(schema, type | tuple) and isinstance(value, schema) else [at]
