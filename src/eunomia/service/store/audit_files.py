"""Parts of the audit log as files, which are verified without a store: a header, and the entries as JSON lists."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from eunomia.inputs.atomic_write import replacing
from eunomia.inputs.file_contents import contents, decoded
from eunomia.inputs.json_text import parse_json
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.service.store.audit_log import AuditChanged, AuditPart, check_part, whole

FOLDER = "audit"  # of the state folder
_FIELDS = [one.name for one in fields(AuditPart)]


def part_path(folder: Path, cluster_id: str, part: AuditPart) -> Path:
    """Return the file of a part."""
    return folder / f"audit-{cluster_id[:16]}-{part.first:010}-{part.last:010}.jsonl.gz"


def write_part(folder: Path, cluster_id: str, part: AuditPart, entries: Iterable[Sequence[Any]]) -> Path:
    """Write a part and its entries, whole and durably; the same part gives the same bytes. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = part_path(folder, cluster_id, part)
    with (
        replacing(path, durable=True) as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
    ):
        os.fchmod(raw.fileno(), 0o600)
        packed.write(_line({"cluster_id": cluster_id, **asdict(part)}))
        for row in entries:
            packed.write(_line([*row]))
    return path


def check_file(path: Path, key: bytes | None) -> tuple[str, AuditPart]:
    """Return the cluster and the part of a file whose entries are those that were signed; see `read_part`."""
    cluster_id, part, _ = read_part(path, key)
    return cluster_id, part


def read_part(path: Path, key: bytes | None) -> tuple[str, AuditPart, list[Sequence[Any]]]:
    """Return the cluster, the part and the entries of a file, once these are those that were signed.

    Raises InvalidInput for a file that is none, and AuditChanged for one that is not as it was written.
    """
    first, *lines = decoded(str(path), contents(path)).splitlines() or [""]
    try:
        header = parse_json(first)
        cluster_id = str(header["cluster_id"])
        part = AuditPart.of([header[name] for name in _FIELDS])
        rows = [parse_json(line) for line in lines]
        if not all(isinstance(row, list) and len(row) == 8 for row in rows):
            raise ValueError("an entry has other fields")
    except (ValueError, TypeError, KeyError, AuditChanged) as error:
        rule = f"this is no part of an audit log ({error})"
        fix = "give a file that a removal wrote into the folder audit"
        raise InvalidInput([Problem(file=str(path), rule=rule, fix=fix)]) from None
    check_part(part, cluster_id, key)
    return cluster_id, part, list(whole(iter(rows), part))


def _line(content: object) -> bytes:
    return f"{json.dumps(content)}\n".encode()
