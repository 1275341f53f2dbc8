"""What pods ask for by the names of Kubernetes' extended resources, and which of these names are accelerators.

Read are names that end in /gpu, slices of devices (…/mig-…), and names that the caller gives. Reference: Kubernetes,
"Resource Management for Pods and Containers", and KEP-753 for sidecars.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache

import numpy as np

from eunomia.inputs.problems import Problems
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.engine_objects import Json, first_label, listed, mapping, texts
from eunomia.traces.import_findings import ImportFindings

CLAIMS = "resource claims (dynamic resource allocation)"
TYPE_LABELS = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-accelerator",
    "amd.com/gpu.product-name", "gpu.nvidia.com/class", "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name", "skypilot.co/accelerator", "accelerator",
)  # fmt: skip
MAKER_BY_WORD = {  # words in the names of resources and labels
    "nvidia": "nvidia", "amd": "amd", "habana": "gaudi", "gaudi": "gaudi", "tpu": "tpu", "intel": "intel",
    "neuron": "neuron", "huawei": "ascend", "cambricon": "cambricon",
}  # fmt: skip
PARTS = ("-mig-", "-shared")  # in the product of a node whose devices are cut or shared
MULTIPLES = {"k": 1_000, "M": 1_000_000}


def requested(spec: Json) -> Counter[str]:
    """Return how many of each extended resource a pod holds.

    That is, of each, the larger of what its containers hold together, sidecars included, and of what an init container
    holds beside the sidecars that started before it.
    """
    sidecars: Counter[str] = Counter()
    most: Counter[str] = Counter()
    started = listed(spec, "containers")
    if len(started) == 1 and "initContainers" not in spec and "resourceClaims" not in spec:  # most pods
        return _of_container(started[0])
    for container in listed(spec, "initContainers"):
        asked = _of_container(container)
        if texts(container, "restartPolicy") == "Always":
            sidecars += asked
        else:
            most |= sidecars + asked
    for container in started:
        sidecars += _of_container(container)
    most |= sidecars
    if listed(spec, "resourceClaims"):
        most[CLAIMS] = len(listed(spec, "resourceClaims"))
    return most


def _of_container(container: object) -> Counter[str]:
    asked = {**mapping(container, "resources", "requests"), **mapping(container, "resources", "limits")}
    return Counter({name: size for name, value in asked.items() if is_extended(name) and (size := count(value))})


def count(value: object) -> int:
    """Return a whole quantity, such as 8, "8" or "1k"; 0 for anything else."""
    text = str(value)
    if text.isdigit() and text.isascii() and len(text) < 10:
        return int(text)
    try:
        number = Decimal(text[:-1]) * MULTIPLES[text[-1]] if text[-1:] in MULTIPLES else Decimal(text)
    except InvalidOperation:
        return 0
    return int(number) if number.is_finite() and 0 < number < 1e9 and number == int(number) else 0


def is_extended(name: str) -> bool:
    """Say whether a resource is one of devices, as other than CPUs, memory and storage."""
    return "/" in name and "kubernetes.io/" not in name


def is_read(name: str, resources: Sequence[str]) -> bool:
    """Say whether a resource is read as accelerators, `resources` being the names that the caller gives."""
    return name.endswith("/gpu") or "/mig-" in name or name in resources


def is_slice(name: str) -> bool:
    """Say whether a resource is a part of a device (MIG, time slices)."""
    return "/mig-" in name or name.endswith(".shared")


def accelerators(asked: Mapping[str, int], resources: Sequence[str]) -> dict[str, int]:
    """Return the part of what is asked for that is read as accelerators."""
    return {name: number for name, number in asked.items() if is_read(name, resources)}


def split_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of resources that are given one by one, or separated by commas."""
    given = names.split(",") if isinstance(names, str) else [part for name in names for part in name.split(",")]
    return tuple(dict.fromkeys(name.strip() for name in given if name.strip()))


def check_names(resources: Sequence[str], seen: Iterable[str], file: str) -> None:
    """Raise InvalidInput for each resource that no pod and no node of the file has."""
    known = sorted({name for name in seen if is_extended(name)})
    problems = Problems(file)
    for name in resources:
        if name not in known:
            fix = nearest(name, known) if known else "leave it out"
            problems.add("no pod and no node here has this resource", fix, column="--resource", value=name)
    problems.raise_if_any()


def note_unread(
    asked: Iterable[tuple[int, Mapping[str, int]]], resources: Sequence[str], findings: ImportFindings
) -> None:
    """Add a finding for each resource of devices that is not read, of the rows and what each asks for.

    Rows that ask for nothing that is read are left out.
    """
    rows: dict[tuple[str, bool], list[int]] = defaultdict(list)
    total: Counter[str] = Counter()
    for m, wanted in asked:
        has_others = bool(accelerators(wanted, resources))
        for name, number in wanted.items():
            if not is_read(name, resources):
                rows[name, has_others].append(m)
                total[name] += 0 if has_others else number
    for (name, has_others), which in sorted(rows.items()):
        how = "" if name == CLAIMS else f" (--resource {name} reads it as accelerators)"
        what = f"pods or Jobs ask for {name}, {total[name]:,} in all, which is not read{how}"
        if has_others:
            what = f"pods or Jobs ask for {name} beside accelerators, which is not read{how}"
        findings.add("assumed" if has_others else "left out", what, np.array(which, dtype=np.int64))


def device_type(labels: Mapping[str, object], resource: str) -> str:
    """Return the accelerator type that a node's labels give to one of its resources.

    A label of another maker does not count. Devices that are not of Nvidia and have no label are named by their maker.
    A slice is a type of its own, such as NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.
    """
    maker = _maker(resource)
    named = first_label(labels, _fitting(maker)) or (maker if maker != "nvidia" else "")
    profile = resource.partition("/mig-")[2]
    return f"{named}-MIG-{profile}".strip("-") if profile else named


@cache
def _fitting(maker: str) -> tuple[str, ...]:
    """Return the labels that may name the type of devices of a maker; "" is one that is not known."""
    return tuple(name for name in TYPE_LABELS if not maker or _maker(name) in ("", maker))


def is_cut(labels: Mapping[str, object]) -> bool:
    """Say whether the devices of a node are cut in slices, or shared, under the name of whole ones."""
    return any(part in first_label(labels, TYPE_LABELS).lower() for part in PARTS)


@cache
def _maker(name: str) -> str:
    return next((maker for word, maker in MAKER_BY_WORD.items() if word in name.lower()), "")
