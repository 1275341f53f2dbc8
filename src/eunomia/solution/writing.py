"""A solution as a file, JSON or NPZ, whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.arrays import Array
from eunomia.solution.answer import Solution
from eunomia.solution.auctions.awards import Awards

SUFFIXES = (".json", ".npz")


def check_place(path: Path, *, force: bool) -> None:
    """Raise InvalidInput when no solution can be written to `path`: its suffix, its folder, or a file in the way."""
    if path.suffix not in SUFFIXES:
        raise _refusal(path, "a solution is a .json or .npz file", "give such a name")
    if not path.parent.is_dir():
        raise _refusal(path, "there is no such folder", "make it, or give another one")
    if path.is_dir() or (path.exists() and not force):
        raise _refusal(path, "it exists", "give another name" if path.is_dir() else "give another, or --force")


def write_solution(solution: Solution | Awards, path: Path) -> None:
    """Write what `as_dict` says: as JSON, or as arrays where only the reasons differ (`why` rows of `reasons`).

    Raises InvalidInput when it cannot be written; a file that stood there is then as it was.
    """
    try:
        descriptor, draft = tempfile.mkstemp(prefix=".draft-", suffix=path.suffix, dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                _write(solution, path.suffix, file)
            Path(draft).chmod(0o666 & ~_mask())
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _refusal(path, f"it cannot be written ({error.strerror})", "give another name") from error


def _write(solution: Solution | Awards, suffix: str, file: BinaryIO) -> None:
    if suffix == ".npz":
        np.savez(file, allow_pickle=False, **_arrays(solution))
    else:
        file.write(json.dumps(solution.as_dict(), allow_nan=False, ensure_ascii=False).encode() + b"\n")


def _arrays(solution: Solution | Awards) -> dict[str, Array]:
    """Return the solution as arrays; what is not known is left out."""
    if isinstance(solution, Awards):
        return solution.arrays()
    reasons, why = np.unique(solution.why(), return_inverse=True)
    found: dict[str, Any] = {
        "status": solution.status,
        "policy": solution.policy,
        "types": solution.problem.types,
        "job_ids": solution.problem.job_ids,
        "x": solution.x,
        "effective_throughput": solution.effective_throughput,
        "reasons": reasons,
        "why": why,
        "seconds": solution.seconds,
        "compile_seconds": solution.compile_seconds,
    }
    found["late"] = np.array(solution.answer.late, dtype=np.int64)
    if solution.certificate is not None:
        proof = solution.certificate
        found |= {"objective": proof.objective, "bound": proof.bound, "gap": proof.gap, "prices": proof.price}
        found["point"] = proof.point
    if solution.rows is not None:
        partner, _, within = solution.rows.filled()
        found |= {"job": solution.rows.job, "type": solution.rows.type, "partner": partner, "within": within}
        found["share"] = solution.share
    return {name: np.asarray(value) for name, value in found.items() if value is not None}


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refusal(path: Path, rule: str, mend: str) -> InvalidInput:
    return InvalidInput([Problem(file=str(path), column="--out", rule=rule, mend=mend)])
