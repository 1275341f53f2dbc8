"""The interior point method of the pricing engine begins again where it loses its way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eunomia.solvers.pricing.box_refinement import SamplePrices
from eunomia.solvers.pricing.rows import NeedRows

# Rows of an ask near saturation, in parts of each row's best speed; one of them has to be full.
NEARLY_FULL = Path(__file__).with_name("nearly-full.csv")


def test_a_row_that_must_be_full_does_not_send_the_level_astray() -> None:
    *speeds, cap = np.loadtxt(NEARLY_FULL, delimiter=",", skiprows=1, unpack=True)
    none, every = np.zeros(len(cap)), np.ones(len(cap))
    rows = NeedRows(np.stack(speeds), none, every, np.full(len(cap), 1e250), None, None, cap)
    spare = np.full(3, 36.0)
    fixed = np.stack((np.zeros(3), spare, np.zeros(3)))
    centre = SamplePrices(2 * spare, 2.0).centre(rows, fixed, 0.0, 0.2, 1e-9)
    assert centre.t == pytest.approx(1.0601, abs=1e-3)
    assert centre.value == pytest.approx([0.1193, 0.3772, 0.5035], abs=1e-3)
