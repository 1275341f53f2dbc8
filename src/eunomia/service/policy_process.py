"""The process that asks the policy: `python -m eunomia.service.policy_process POLICY BASE`, see `child_process`.

It imports little, as it stays while the service is idle: its memory is the service's.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eunomia.child_process import answer_frames
from eunomia.kernels import load_compiler
from eunomia.model.answers import InvalidAnswer
from eunomia.model.policy import Policy
from eunomia.policies import POLICIES, load
from eunomia.policies.presets import PRESETS
from eunomia.records.packed_objects import pack, unpack
from eunomia.records.policy_call import PolicyFailed, ask_policy

READY, COMPILER, ANSWER, FAILED = b"r", b"c", b"a", b"f"  # first byte of a frame
_log = logging.getLogger(__name__)


def main(text: str, base: Path) -> None:
    """Answer views with what a policy decides; `text` is its name, parameters and debug lane as JSON."""
    name, parameters, debug_lane = json.loads(text)
    policy = _policy(name, parameters, base)
    if debug_lane:
        from eunomia.service.debug_lane import DebugLane

        policy = DebugLane(policy, debug_lane)

    def answer(frame: bytes) -> bytes:
        if frame[:1] == COMPILER:
            load_compiler()
        if frame[:1] in (READY, COMPILER):
            return READY
        try:
            return ANSWER + pack(ask_policy(policy, unpack(frame[1:])))
        except (InvalidAnswer, PolicyFailed) as error:
            _log.warning("%s", error)
            return FAILED + str(error).encode()[:2000]
        except (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
                ValueError) as error:  # fmt: skip
            _log.exception("policy %s failed", policy.info.name)
            return FAILED + f"{type(error).__name__}: {error}".encode()[:2000]

    answer_frames(answer)


def _policy(name: str, parameters: Mapping[str, Any], base: Path) -> Policy:
    """Return the policy of a checked site; only one that is not built in needs what finds others."""
    known, preset = PRESETS.get(name, (name, {}))
    if known in POLICIES:
        return load(known)(**{**preset, **parameters})
    from eunomia.setup.policy_lookup import find_policy

    return find_policy(name, parameters, base)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
