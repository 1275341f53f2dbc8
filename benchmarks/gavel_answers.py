"""By how much our answers are better than Gavel's own, each in its policy's objective.

Needs Gavel's published problems and answers (`--data`, a folder with policy_instances.json and the throughput table).
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from pathlib import Path

HEAD = (
    "| policy | its objective | problems | equal to 1e-6 | better | by at most |\n| --- | --- | --- | --- | --- | --- |"
)


def main() -> None:
    """Print the table of docs/gavel-answers.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gavel_answers", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of Gavel's published results")
    os.environ["EUNOMIA_DATA"] = str(parser.parse_args().data.resolve().parent)
    from tests.policies.test_gavel_instances import OWN_COLUMN, asked, instances

    gains: dict[str, list[float]] = defaultdict(list)
    for name, one in instances().items():
        for policy, column in OWN_COLUMN.items():
            published = one["results"].get(policy, {}).get(column)
            if published is not None:
                mine = asked(name, policy)[2][column]
                gains[policy].append(published / mine - 1 if column.startswith("max_") else mine / published - 1)
    print(HEAD)
    for policy, found in gains.items():
        better = [gain for gain in found if gain > 1e-6]
        most = f"{max(better):.2%}" if better else "–"
        print(
            f"| `gavel:{policy}` | {OWN_COLUMN[policy]} "
            f"| {len(found)} | {len(found) - len(better)} | {len(better)} | {most} |"
        )


if __name__ == "__main__":
    main()
