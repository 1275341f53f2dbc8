"""Which jobs share an accelerator when a fifth of the pairs is profiled, beside the exact matching.

Twenty jobs of Gavel's types on ten v100s: every job has a partner, and the total is Σ of both normalised throughputs of
each pair. The matching of the largest believed total is played with the true rates and compared with the best there is
and with greedy, which knows the truth and takes the best pair again and again. Sixteen of the 26 types are references,
whose pairs are all known; which pairs fit into memory is known too (D. Narayanan et al., OSDI 2020, section 6).
With PyTorch also `learned_pairs`: for each draw its network is trained on the pairs of the references alone.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from eunomia.inputs.install_hint import install_command
from eunomia.kernels import kernel
from eunomia.learning.pairs.features import corrected
from eunomia.metrics.statistics import paired
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.throughputs import read_table
from eunomia.throughputs.estimators.judging import JudgeSettings, PairJudgement, judge
from eunomia.throughputs.estimators.pair_table import PairTable
from eunomia_reproduction.table import FigureRow, FigureTable, Request

JOBS, TYPE, DRAWS = 20, "v100", 10  # draws of jobs for each draw of references
FEWEST = 20  # seeds
GOALS = {"mean": 0.97, "5th percentile": 0.94}
METHODS = {
    "greedy by true rates": None,
    "column mean": JudgeSettings(method="column_mean"),
    "published matching": JudgeSettings(method="match"),
    "ours": JudgeSettings(),
    "ours, pairs that teach most": JudgeSettings(choose="telling"),
}
BASE, LEARNED = "ours, pairs that teach most", "learned_pairs, pairs that teach most"


@kernel(allocates=False)
def best_totals(worth: Floats, best: Floats, choice: Ints) -> None:
    """Fill in, for each set of an even number of jobs (bits), the largest total of a matching and its first partner.

    worth (job, job) is symmetric; best and choice have 2^jobs places.
    """
    jobs = len(worth)
    best[0] = 0.0
    for chosen in range(1, len(best)):
        best[chosen] = -1.0
        first = 0
        while not (chosen >> first) & 1:
            first += 1
        for other in range(first + 1, jobs):
            if (chosen >> other) & 1:
                rest = best[chosen ^ (1 << first) ^ (1 << other)]
                if rest >= 0.0 and rest + worth[first, other] > best[chosen]:
                    best[chosen], choice[chosen] = rest + worth[first, other], other


def exact_matching(worth: Floats) -> list[tuple[int, int]]:
    """Return the pairs with the largest total of worth (job, job), symmetric; all of an even number of jobs."""
    jobs = len(worth)
    best, choice = np.empty(1 << jobs), np.zeros(1 << jobs, dtype=np.int64)
    best_totals(worth, best, choice)
    left, found = (1 << jobs) - 1, []
    while left:
        first = (left & -left).bit_length() - 1
        found.append((first, int(choice[left])))
        left ^= (1 << first) | (1 << found[-1][1])
    return found


def greedy_matching(worth: Floats) -> list[tuple[int, int]]:
    """Return pairs, again and again the one with the largest worth."""
    left, found = np.where(np.eye(len(worth), dtype=bool), -1.0, worth), []
    for _ in range(len(worth) // 2):
        a, b = np.unravel_index(np.argmax(left), left.shape)
        found.append((int(a), int(b)))
        left[[a, b]] = left[:, [a, b]] = -1.0
    return found


def reproduce(request: Request) -> FigureTable:
    """Draw references, profiles and jobs by the seed, and match by each belief."""
    table = PairTable.of(read_table(str(request.folder("data/gavel") / "simulation_throughputs.json.gz")))
    type, seeds = table.types.index(TYPE), max(request.seeds, FEWEST)
    true = _worth(np.nan_to_num(table.kept), type)
    learns = find_spec("torch") is not None
    ratios: dict[str, list[float]] = {name: [] for name in (*METHODS, *([LEARNED] if learns else ()))}
    for seed in range(seeds):
        judged = {name: judge(table, _seeded(how, seed)) for name, how in METHODS.items() if how is not None}
        beliefs = {name: _believed(found) for name, found in judged.items()}
        if learns:
            beliefs[LEARNED] = _learned(table, judged[BASE].references, seed, beliefs[BASE])
        rng = np.random.default_rng(seed)
        for _ in range(DRAWS):
            chosen = rng.integers(0, len(true), JOBS)
            part = np.ix_(chosen, chosen)
            most = _total(true[part], exact_matching(true[part]))
            for name, found in ratios.items():
                known = name not in beliefs
                pairs = greedy_matching(true[part]) if known else exact_matching(_worth(beliefs[name], type)[part])
                found.append(_total(true[part], pairs) / most)
        request.tell(f"seed {seed + 1} of {seeds}: ours {np.mean(ratios[BASE]):.4f} so far")
    rows = [row for name, found in ratios.items() for row in _rows(name, np.array(found))]
    greedy = "greedy by true rates"
    rows += [row for name in ratios if name.startswith(("ours", "learned")) for row in _over(name, greedy, ratios)]
    if learns:
        rows += _over(LEARNED, BASE, ratios)
    notes = (
        f"{seeds} draws of references and profiles, {DRAWS} draws of {JOBS} jobs each, on {JOBS // 2} accelerators.",
        "Profiled: 20 % of the pairs of each new job type with the 16 references. The interval is paired by the seed.",
        *(() if learns else (f"learned_pairs is left out: {install_command('learning')}",)),
    )
    return FigureTable(rows=tuple(rows), notes=notes)


def _seeded(how: JudgeSettings, seed: int) -> JudgeSettings:
    return JudgeSettings(method=how.method, choose=how.choose, seed=seed)


def _believed(found: PairJudgement) -> Floats:
    """Return believed kept, (job type, type, partner): true ones of references, 0 of pairs that do not fit."""
    known = np.isin(np.arange(len(found.truth)), found.references)
    both = known[:, None, None] & known[None, None, :]
    kept = np.where(both, found.truth, np.clip(found.raw, 1e-3, 1.0))
    return np.where(found.truth > 0, kept, 0.0)


def _learned(table: PairTable, references: Ints, seed: int, believed: Floats) -> Floats:
    """Return what a network corrects that has learnt from the pairs of the references, (job type, type, partner)."""
    from eunomia.learning.pairs.training import PairsTraining, rows_of

    work = PairsTraining.on(rows_of(table, references), PairsTraining.default_steps, np.random.default_rng(seed))
    best, network = 0.0, work.network
    for step in range(work.default_steps):
        work.train(step)
        if (step + 1) % work.judge_every == 0 and (gain := work.judge()["error_reduction"]) > best:
            best, network = gain, work.network
    known = np.isin(np.arange(len(believed)), references)
    both = known[:, None, None] & known[None, None, :]
    return np.where(both, believed, corrected(network, believed))


def _worth(kept: Floats, type: int) -> Floats:
    """Return the sum of both members' normalised throughput, (job type, job type)."""
    return np.asarray(kept[:, type, :] + kept[:, type, :].T)


def _total(worth: Floats, pairs: list[tuple[int, int]]) -> float:
    return float(sum(worth[a, b] for a, b in pairs))


def _rows(name: str, found: Floats) -> list[FigureRow]:
    values = {"mean": float(found.mean()), "5th percentile": float(np.quantile(found, 0.05))}
    return [
        FigureRow(
            series=name, quantity=f"total rate ÷ exact matching, {what}", unit="", measured=round(value, 4),
            note=f"goal {GOALS[what]:g}" if name.startswith(("ours", "learned")) else "",
        )
        for what, value in values.items()
    ]  # fmt: skip


def _over(name: str, other: str, ratios: dict[str, list[float]]) -> list[FigureRow]:
    """Return the ratio to another belief, with its interval over seeds."""
    mine, theirs = (np.array(ratios[one]).reshape(-1, DRAWS).mean(axis=1) for one in (name, other))
    found = paired(dict(enumerate(mine.tolist())), dict(enumerate(theirs.tolist())), 0.95)
    assert found is not None and found.log_ratio is not None
    ratio = found.log_ratio
    return [
        FigureRow(
            series=f"{name} ÷ {other}", quantity=f"total rate, ratio{end}", unit="",
            measured=round(float(elementary.exp(value)), 4),
        )
        for end, value in (("", ratio.mean), (", low", ratio.low), (", high", ratio.high))
        if value is not None
    ]  # fmt: skip
