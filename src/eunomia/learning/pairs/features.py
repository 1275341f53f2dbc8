"""What the pairs network sees of a pair on an accelerator type: what is believed of it, and of both jobs' other pairs.

    kept'[a, j, b] = min(1, max(ε, kept[a, j, b] + f(x[a, j, b])))

kept the believed rate of a beside b on type j over that of a alone, 0 where the two do not fit, and f a perceptron.
Means are over the pairs that fit.
"""

from __future__ import annotations

import numpy as np

from eunomia.learning.model_file import Feature
from eunomia.learning.perceptron import Perceptron
from eunomia.model.arrays import Bools, Floats

NAMES = (
    "kept", "partner_kept", "mean_kept", "partner_mean_kept", "mean_kept_beside", "partner_mean_kept_beside",
    "kept_on_all_types", "partner_kept_on_all_types",
)  # fmt: skip
FEATURES = tuple(Feature(name=name, unit="rate / rate alone", mean=0.6, scale=0.25) for name in NAMES)
LEAST = 1e-3  # ε, of a pair that fits


def pair_features(kept: Floats) -> Floats:
    """Return the normalised features, (job type, type, partner, feature), of believed kept (job type, type, partner).

    `kept` is 0 where the two do not fit.
    """
    fits, turned = kept > 0, kept.transpose(2, 1, 0)
    shape = kept.shape
    own = np.broadcast_to(_mean(kept, fits, 2), shape)
    beside = np.broadcast_to(_mean(kept, fits, 0), shape)  # what jobs keep beside the partner
    everywhere = np.broadcast_to(_mean(kept, fits, 1), shape)
    columns = (
        kept, turned, own, own.transpose(2, 1, 0), beside.transpose(2, 1, 0), beside, everywhere,
        everywhere.transpose(2, 1, 0),
    )  # fmt: skip
    return np.stack([(x - one.mean) / one.scale for x, one in zip(columns, FEATURES, strict=True)], axis=-1)


def corrected(network: Perceptron, kept: Floats) -> Floats:
    """Return what each job keeps by the network, (job type, type, partner): above 0 where the believed one is."""
    x = pair_features(kept)
    moved = kept + network(x.reshape(-1, len(FEATURES))).reshape(kept.shape)
    return np.where(kept > 0, np.clip(moved, LEAST, 1.0), 0.0)


def _mean(kept: Floats, fits: Bools, axis: int) -> Floats:
    count = np.add.reduce(fits, axis=axis, keepdims=True)
    total = np.add.reduce(kept, axis=axis, keepdims=True)
    return np.divide(total, count, out=np.zeros(total.shape), where=count > 0)
