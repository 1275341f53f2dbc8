"""The throughputs of a problem from a table by job type, such as the one that a service has learnt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eunomia.allocation.auctions.reading import is_auction
from eunomia.allocation.name_fields import read_texts
from eunomia.allocation.number_fields import AxisNames, read_numbers
from eunomia.inputs.problems import Problems, refused
from eunomia.throughputs import load


def with_belief(fields: Mapping[str, object], table: Path, file: str) -> dict[str, object]:
    """Return the fields of a problem with `throughput` and `throughput_estimated` from the table of throughputs.

    The problem has `job_type`, and needs no throughput of its own. Raises InvalidInput for a problem of bids, for one
    with `pairs` or `throughput_apart`, which may not fit the table, for wrong `types`, `job_type` or `scale_factor`,
    for a table that cannot be read, and for throughputs that it does not have.
    """
    if is_auction(fields):
        rule = "bids say what they are worth, so a table of throughputs changes nothing"
        raise refused(file, "bids", None, rule, "leave --belief out")
    problems = Problems(file)
    for field, fix in (("types", "add types, as in docs/solve.md"), ("job_type", "add the job type of each job")):
        if field not in fields:
            problems.add("is missing, and the table names throughputs by it", fix, column=field)
    for field in ("pairs", "throughput_apart"):
        if field in fields:
            rule = "these throughputs would stay as they are beside those of the table"
            problems.add(rule, "leave it out, or leave --belief out", column=field)
    problems.raise_if_any()
    job_type = read_texts("job_type", fields["job_type"], None, problems)
    types = read_texts("types", fields["types"], None, problems, unique=True)
    problems.raise_if_any()
    assert job_type is not None and types is not None
    names = AxisNames(len(job_type), tuple(types.tolist()))
    size = read_numbers("scale_factor", fields.get("scale_factor", [1] * names.jobs), names, problems)
    problems.raise_if_any()
    assert size is not None
    speeds = load(str(table), types.tolist(), base=Path())
    kinds = list(zip(job_type.tolist(), size.astype(int).tolist(), strict=True))
    speeds.refuse_unknown({kind: kinds.count(kind) for kind in dict.fromkeys(kinds)})
    return {
        **fields,
        "throughput": [speeds.solo_throughput(*kind).tolist() for kind in kinds],
        "throughput_estimated": [speeds.estimated(*kind).astype(int).tolist() for kind in kinds],
    }
