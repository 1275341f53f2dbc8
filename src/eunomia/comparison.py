"""Comparisons from Python: policies as names or objects, and results that show themselves in a notebook."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.policy import Policy
from eunomia.report import write_report
from eunomia.report.sweep import write_averages, write_sweep_report
from eunomia.runs.compare import as_scenario, cases
from eunomia.runs.report_input import content_of
from eunomia.runs.simulation import Result, simulate
from eunomia.scenario import Scenario
from eunomia.sweeps.analysis import content_of as sweep_content_of
from eunomia.sweeps.axes import frame_of
from eunomia.sweeps.plan import plan
from eunomia.sweeps.runner import carry_out
from eunomia.sweeps.sweep_file import read
from eunomia.verdict.findings import Findings, findings
from eunomia.verdict.number_format import plural
from eunomia.verdict.run_figures import ReportContent
from eunomia.verdict.sweep_content import SweepContent
from eunomia.verdict.sweep_findings import findings as sweep_findings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("jct_mean_s", "jct_p99_s", "queueing_mean_s", "utilization", "rho_themis_max", "preemptions", "cost_usd")


@dataclass(frozen=True, kw_only=True, eq=False)
class RunTable:
    """The runs of a comparison or a sweep: one row each, with its policy, load, seed and the fields of summary.json."""

    rows: tuple[Mapping[str, Any], ...]
    content: ReportContent | SweepContent

    @property
    def findings(self) -> Findings:
        """The verdict of the report."""
        return findings(self.content) if isinstance(self.content, ReportContent) else sweep_findings(self.content)

    @property
    def verdict(self) -> str:
        """The verdict in sentences."""
        return " ".join(self.findings.sentences)

    def frame(self) -> pa.Table:
        """Return the rows as an Arrow table, which pandas, polars and duckdb read."""
        return pa.Table.from_pylist([dict(row) for row in self.rows])

    def plot(
        self,
        y: str = "jct_mean_s",
        x: str | None = None,
        file: str | Path | None = None,
        *,
        width_in: float = 3.33,
        font_pt: float = 8.0,
        names: Mapping[str, str] | None = None,
    ) -> Figure:
        """Return a figure of field `y` with 95 % intervals over the seeds, and write it to `file` (.pdf, .svg, .png).

        `x` is a column of numbers; without it the load where there are several, else one bar for each policy.
        """
        from eunomia.report.figure import draw_figure, save_figure
        from eunomia.report.figure_style import FigureStyle

        style = FigureStyle(width_in=width_in, font_pt=font_pt, names=names or {})
        along = x or ("load" if len({row.get("load") for row in self.rows}) > 1 else "policy")
        figure = draw_figure(self.rows, y, along, style)
        if file is not None:
            save_figure(figure, Path(file), style)
        return figure

    def report(self, file: str | Path) -> None:
        """Write the report, one HTML file."""
        if isinstance(self.content, ReportContent):
            write_report(self.content, Path(file))
        else:
            write_sweep_report(self.content, Path(file))

    def __repr__(self) -> str:
        policies = len({row["policy"] for row in self.rows})
        size = f"{plural(len(self.rows), 'run')} of {policies} polic{'y' if policies == 1 else 'ies'}"
        return f"<{type(self).__name__}: {size}. {self.findings.answer}>"

    def _repr_html_(self) -> str:
        """Return the verdict and the averages, for a notebook."""
        from eunomia.report.frame import TEMPLATES
        from eunomia.report.table import mean_table

        found = self.findings
        lines = [line for line in (*found.warnings, found.certainty) if line]
        table = mean_table(self.rows, SHOWN)
        return TEMPLATES.render("notebook.html", answer=found.answer, lines=lines, table=table)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(RunTable):
    """The same jobs under several policies; `results` has the whole results, in order of `rows`."""

    results: tuple[Result, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SweepOutcome(RunTable):
    """The runs of a sweep."""

    failures: tuple[tuple[str, str], ...]  # run, error


def compare(
    scenario: Scenario | str | Path | Mapping[str, Any],
    policies: Sequence[str | Policy],
    *,
    seeds: int | Sequence[int] | None = None,
    loads: Sequence[float] | None = None,
) -> Comparison:
    """Run the jobs of a scenario under several policies, one run after the other.

    `policies` are spelt as after `--policy`, or objects. `seeds` is a number of seeds, from 0 on, or the seeds; without
    it the scenario's own. Raises InvalidInput with everything that is wrong with the input.
    """
    base = as_scenario(scenario)
    labels = _labels(policies)
    wanted = [seeds] if seeds is None else list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    combinations = [
        (case.load, case.seed, label, policy, case.scenario)
        for case in cases(base, [], list(loads or []), [seed for seed in wanted if seed is not None])
        for label, policy in labels.items()
    ]
    rows, results = [], []
    for load, seed, label, policy, one in combinations:
        result = simulate(one, policy=policy)
        results.append((label, result))
        rows.append({"policy": label, "load": load, "seed": seed, **result.summary})
    content = content_of(results, f"{base.name}: {plural(len(rows), 'run')} compared")
    return Comparison(rows=tuple(rows), content=content, results=tuple(result for _, result in results))


def _labels(policies: Sequence[str | Policy]) -> dict[str, str | Policy]:
    """Return the policies by the names to show. Raises InvalidInput for two of one name, or none."""
    labels: dict[str, str | Policy] = {}
    problems = []
    if not policies:
        problems.append(Problem(file="compare", column="policies", rule="there is none", fix="name at least one"))
    for policy in policies:
        label = policy if isinstance(policy, str) else _spelling(policy)
        if label in labels:
            fix = "give each policy once, or objects with different parameters"
            problems.append(Problem(file="compare", column="policies", value=label, rule="this one is twice", fix=fix))
        labels[label] = policy
    if problems:
        raise InvalidInput(problems)
    return labels


def _spelling(policy: Policy) -> str:
    """Return an object's name with the parameters that are not the default."""
    from eunomia.setup.policy_lookup import changed_parameters

    changed = "&".join(f"{name}={value}" for name, value in changed_parameters(policy).items())
    return f"{policy.info.name}?{changed}" if changed else policy.info.name


def sweep(file: str | Path, out: str | Path, *, workers: int | None = None) -> SweepOutcome:
    """Run a sweep file into the folder `out`, in `workers` processes (one a core); finished runs are not repeated."""
    sweep_file = read(Path(file))
    rows = plan(sweep_file)
    frame = frame_of(sweep_file, rows)
    outcome = carry_out(sweep_file, rows, Path(out), workers or os.cpu_count() or 1)
    content = sweep_content_of(sweep_file, frame, outcome)
    write_sweep_report(content, Path(out) / "report.html")
    write_averages(content, Path(out))
    made = [{**row.labels, **summary} for row, summary in zip(outcome.rows, outcome.summaries, strict=True)]
    failures = tuple((failure.row.name, failure.error) for failure in outcome.failures)
    return SweepOutcome(rows=tuple(made), content=content, failures=failures)
