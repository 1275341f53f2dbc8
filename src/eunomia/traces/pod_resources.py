"""What pods ask for by the names of Kubernetes' extended resources, and which of these names are accelerators.

Read are names that end in /gpu, slices of devices (…/mig-…), and names that the caller gives. Reference: Kubernetes,
"Resource Management for Pods and Containers", and KEP-753 for sidecars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from eunomia.inputs.problems import Problems
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.engine_objects import Json, first_label, listed, mapping, texts

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
    for container in listed(spec, "initContainers"):
        asked = _of_container(container)
        if texts(container, "restartPolicy") == "Always":
            sidecars += asked
        else:
            most |= sidecars + asked
    for container in listed(spec, "containers"):
        sidecars += _of_container(container)
    most |= sidecars
    if listed(spec, "resourceClaims"):
        most[CLAIMS] = len(listed(spec, "resourceClaims"))
    return most


def _of_container(container: object) -> Counter[str]:
    asked = {**mapping(container, "resources", "requests"), **mapping(container, "resources", "limits")}
    return Counter({name: count(value) for name, value in asked.items() if is_extended(name) and count(value)})


def count(value: object) -> int:
    """Return a whole quantity, such as 8, "8" or "1k"; 0 for anything else."""
    text = str(value)
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


def device_type(labels: Mapping[str, object], resource: str) -> str:
    """Return the accelerator type that a node's labels give to one of its resources.

    A label of another maker does not count. Devices that are not of Nvidia and have no label are named by their maker.
    """
    maker = _maker(resource)
    fitting = [name for name in TYPE_LABELS if not maker or _maker(name) in ("", maker)]
    return first_label(labels, fitting) or (maker if maker != "nvidia" else "")


def is_cut(labels: Mapping[str, object]) -> bool:
    """Say whether the devices of a node are cut in slices, or shared, under the name of whole ones."""
    return any(part in first_label(labels, TYPE_LABELS).lower() for part in PARTS)


def _maker(name: str) -> str:
    return next((maker for word, maker in MAKER_BY_WORD.items() if word in name.lower()), "")
