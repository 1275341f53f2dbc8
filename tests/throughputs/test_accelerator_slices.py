"""Slices of accelerators by the names that cluster managers give them."""

from __future__ import annotations

import pytest

from eunomia.throughputs.catalogue import slice_of


@pytest.mark.parametrize(
    ("name", "device", "compute"),
    [
        ("a100_1g.5gb", "a100-40gb", 1 / 7),
        ("nvidia_a100_3g.20gb", "a100-40gb", 3 / 7),
        ("a100_1g.10gb", "a100-80gb", 1 / 7),
        ("a100_7g.40gb", "a100-40gb", 1),
        ("nvidia.com/mig-2g.10gb", "a100-40gb", 2 / 7),
        ("mig-3g.40gb", "a100-80gb", 3 / 7),
        ("h100-1g.10gb", "h100", 1 / 7),
        ("3g.71gb", "h200", 3 / 7),
        ("a30_1g.6gb", None, 1 / 4),
        ("4g.24gb", None, 1),
    ],
)
def test_a_slice_is_named_by_its_device_and_its_part_of_the_compute(
    name: str, device: str | None, compute: float
) -> None:
    found = slice_of(name)
    assert found is not None
    assert (None if found.device is None else found.device.name, found.compute) == (device, pytest.approx(compute))


@pytest.mark.parametrize("name", ["a100", "NVIDIA-A100-SXM4-80GB", "v100-32gb", "gpu", "", "5g"])
def test_whole_accelerators_are_no_slices(name: str) -> None:
    assert slice_of(name) is None
