"""Every kind of nonsense that an answer can be, by the rule that it breaks; three jobs on three accelerators.

Jobs are rows of the view: a needs one accelerator, b two, c one and cannot run on the k80. There are two v100 on one
machine, devices 0 and 1, and a k80, device 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from eunomia.model.answers import Answer, Grants, Order, Rows, Shares
from eunomia.model.certificate import Certificate
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.testing.small_worlds import DrawnRates

SPEEDS = DrawnRates(types=("v100", "k80"), by_kind={"any": (2.0, 1.0), "fast": (2.0, 0.0)})
TOPOLOGY = Topology.of([Node(type="v100", accelerators=2), Node(type="k80", accelerators=1)])
JOBS = tuple(
    Job(job_id=name, sequence=i, total_steps=100.0, scale_factor=size, job_type=kind)
    for i, (name, size, kind) in enumerate([("a", 1, "any"), ("b", 2, "any"), ("c", 1, "fast")])
)
ROWS = Rows(np.array([0, 1, 2]), np.array([0, 0, 0]))
X = np.array([[0.5, 0.0], [0.5, 0.0], [0.25, 0.0]])
PLAIN = {
    "shares": Shares(X),
    "shares of rows": Shares(np.array([0.5, 0.5, 0.25]), rows=ROWS),
    "order": Order(ROWS),
    "grants": Grants(Rows(np.array([0]), np.array([0])), np.array([0]), np.array([0]), np.array([math.nan])),
}
Nonsense = tuple[str, str, Any]  # kind of answer, rule that is broken (a pattern), answer


def ints(*values: Any) -> Any:
    return np.array(values)


def _x(changes: dict[tuple[int, int], float]) -> np.ndarray[Any, Any]:
    x = X.copy()
    for place, value in changes.items():
        x[place] = value
    return x


def _of_every_kind(plain: Answer) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong whatever the candidates are."""
    yield "it answered NoneType", None
    yield "it answered ndarray", np.full((3, 2), 0.1)
    yield "it answered dict", {"x": 1}
    yield "it answered type", type(plain)
    yield "it answered Answer, and its card says", Answer()
    for again_at in (math.nan, -math.inf, 0.0, -1.0, None, "soon", True, np.array([5.0])):
        yield "asked again at", replace(plain, again_at=again_at)
    for field in ("why", "refuse"):
        for job in (3, -1, 0.5, math.nan, "a", True):
            yield f"{field} names the job", replace(plain, **{field: {job: "text"}})
        yield f"{field} of job 'b' is 7; it is a text", replace(plain, **{field: {1: 7}})
        for given in (["text"], [], None, 0, np.zeros(3)):
            yield f"{field} is {type(given).__name__}", replace(plain, **{field: given})
    yield "why names the job", replace(plain, why=WaitReasons.of(4, ints(1, 3), Reason("no_share")))
    yield "refuse of job 'b' is Reason", replace(plain, refuse={1: Reason("no_share")})  # type: ignore
    for late in ((3,), (-1,), (0.0,)):
        yield "late names the job", replace(plain, late=late)
    for late in (None, 3, "a", np.array([[0]])):
        yield "late is", replace(plain, late=late)
    for memory in (np.zeros(2), np.zeros((3, 1)), np.array(["x"] * 3), np.array([None] * 3), [0.0, 0.0, 0.0], 1.0):
        yield "memory 'luck' is", replace(plain, memory={"luck": memory})
    yield "memory 'luck' of job 'b' is nan", replace(plain, memory={"luck": np.array([0.0, math.nan, 0.0])})
    for kept in (object(), np.array([object()]), {1, 2}, lambda: 0):
        yield "memory 'own' is .* no record can hold", replace(plain, memory={"own": kept})
    for given in ([1], [], None, 0, np.zeros(3)):
        yield f"memory is {type(given).__name__}", replace(plain, memory=given)
    yield "memory has the name 3", replace(plain, memory={3: 1.0})
    proof = Certificate(objective=1.0, bound=1.0)
    yield "certificate is of type float", replace(plain, certificate=1.0)
    for field in ("objective", "bound"):
        for value in (math.nan, None, "1"):
            yield f"the {field} of the certificate", replace(plain, certificate=replace(proof, **{field: value}))
    for price in (np.array([-1.0, 0.0]), np.array([math.nan, 0.0]), np.array([math.inf, 0.0])):
        yield "the price of v100", replace(plain, certificate=replace(proof, price=price))
    for price in (np.zeros(3), [0.0, 0.0], np.array(["1", "2"])):
        yield "the prices of the certificate", replace(plain, certificate=replace(proof, price=price))
    for binding in (np.zeros(2, dtype=int), np.full(3, 9), np.full(3, math.nan)):
        yield "binding of the certificate", replace(plain, certificate=replace(proof, binding=binding))


def _of_rows(plain: Rows) -> Iterator[tuple[str, Any]]:
    """Yield rows that name what is not there; `plain` has at least one row."""
    n, types = len(plain), "0 … 1"
    first = np.arange(n) == 0
    for job in (3, -1, 2**40):
        yield "a row names a job outside 0 … 2", replace(plain, job=np.where(first, job, plain.job))
    for job in (0.5, math.nan):
        yield "rows.job has numbers of type float64", replace(plain, job=np.where(first, job, plain.job))
    yield "rows.job has numbers of type bool", replace(plain, job=np.ones(n, dtype=bool))
    yield "rows.job has numbers of type object", replace(plain, job=np.array([None] * n))
    yield "rows.job is list", replace(plain, job=plain.job.tolist())
    yield "rows.job is an array with shape", replace(plain, job=plain.job[:, None])
    for type_ in (2, -1):
        yield f"a row names a type outside {types}", replace(plain, type=np.where(first, type_, plain.type))
    yield "rows.type has numbers of type float64", replace(plain, type=plain.type.astype(float))
    yield "differ in length", replace(plain, type=plain.type[1:])
    yield "differ in length", replace(plain, partner=np.full(n + 1, -1))
    yield "a row names a partner outside -1 … 2", replace(plain, partner=np.where(first, 7, -1))
    yield "rows.partner has numbers of type float64", replace(plain, partner=np.full(n, -1.0))
    yield "pairs a job with itself", replace(plain, partner=np.where(first, plain.job, -1))
    yield "different scale factors", replace(plain, partner=np.where(first, 1, -1))
    yield "names shape 4 of a job that has 1", replace(plain, shape=np.where(first, 4, 0))
    yield "a row names a shape outside", replace(plain, shape=np.where(first, -1, 0))
    yield "a row names a level outside -1 … 0", replace(plain, within=np.where(first, 2, -1))
    yield "rows is of type tuple", (plain.job, plain.type)
    yield "rows is of type NoneType", None


def _shares() -> Iterator[tuple[str, Any]]:
    """Yield shares (job, type) that are not."""
    for value in (math.nan, math.inf, -math.inf, -1.0, 3.0, 1.0 + 1e-5, -1e-5):
        yield "job 'a' has a share of", Shares(_x({(0, 0): value}))
    yield "job 'a' is given 1.5 of its time", Shares(_x({(0, 0): 0.75, (0, 1): 0.75}))
    yield "shares take 2.75 accelerators of v100", Shares(_x({(1, 0): 1.0}))
    yield "job 'c' has a share on k80, where it cannot run", Shares(_x({(2, 1): 0.1}))
    yield "job 'b' has a share on k80, which is too small: it has 1, its gang 2", Shares(_x({(1, 1): 0.1}))
    for x in (X[:2], X.T, X[..., None], X.ravel(), np.float64(0.5), np.zeros((0, 2))):
        yield "x is of type|x has shape", Shares(x)
    for x in (X.tolist(), X.astype(object), X.astype(str), X.astype(complex), None):
        yield "x is .*; shares are an array of numbers", Shares(x)
    yield "fill is 2", Shares(_x({(0, 0): 0.25}), fill=2)
    rows, x = ROWS, np.array([0.5, 0.5, 0.25])
    for value in (math.nan, math.inf, -1.0, 3.0):
        yield "job 'a' has a share of", Shares(np.array([value, 0.5, 0.25]), rows=rows)
    yield r"x has shape \(2,\) for 3 rows", Shares(x[:2], rows=rows)
    pair = Rows(ints(0, 2), ints(0, 0), partner=ints(2, -1))
    yield "job 'c' is given 1.4 of its time", Shares(ints(0.7, 0.7), rows=pair)
    beside = Rows(ints(0), ints(1), partner=ints(2))
    yield "job 'a' beside 'c' has a share on k80, where the two cannot run", Shares(ints(0.5), rows=beside)
    yield "is named on v100 twice", Shares(ints(0.1, 0.1), rows=Rows(ints(0, 0), ints(0, 0)))
    yield "shares take 2.5 accelerators", Shares(ints(1.0, 0.5), rows=Rows(ints(1, 0), ints(0, 0)))


def _orders() -> Iterator[tuple[str, Any]]:
    for misfit in ("wait", None, 3):
        yield "misfit is", Order(ROWS, misfit=misfit)  # type: ignore[arg-type]
    yield "job 'c' is ordered to k80, where it cannot run", Order(Rows(ints(2), ints(1)))
    yield "job 'b' is ordered to k80, which is too small", Order(Rows(ints(1), ints(1)))
    yield "the rows of job 'a' do not stand together", Order(Rows(ints(0, 2, 0), ints(0, 0, 1)))
    yield "job 'a' is named on v100 twice", Order(Rows(ints(0, 0), ints(0, 0)))


def _grants() -> Iterator[tuple[str, Any]]:
    plain = PLAIN["grants"]
    one, two = Rows(ints(0), ints(0)), Rows(ints(0, 2), ints(0, 0))
    for row in (ints(1), ints(-1), ints(0.0), ints(True)):
        yield "a row names a row outside|row has numbers of type", replace(plain, row=row)
    for device in (ints(3), ints(-1), ints(0.0), ints(math.nan)):
        yield "a row names a device outside|device has numbers of type", replace(plain, device=device)
    for stop in (ints(3), ints(-1), ints(0.0), ints(math.nan), [0]):
        yield "a row names a job to stop outside|stop has numbers of type|stop is list", replace(plain, stop=stop)
    for until in (ints(0.0), ints(-math.inf), ints(-5.0)):
        yield "job 'a' is granted until", replace(plain, until=until)
    for until in (ints(5.0, 5.0), None, 5.0, ints("soon")):
        yield "until is", replace(plain, until=until)
    nan = np.array([math.nan])
    yield "row and device differ in length", replace(plain, row=ints(0, 0))
    yield "is granted 2 seats; its gang is 1", Grants(one, ints(0, 0), ints(0, 1), nan)
    yield "is granted 0 seats; its gang is 1", Grants(one, ints(0)[:0], ints(0)[:0], nan)
    yield "job 'b' is granted 1 seats; its gang is 2", Grants(Rows(ints(1), ints(0)), ints(0), ints(0), nan)
    yield "one device twice: device 0 to job 'a' and job 'c'", Grants(two, ints(0, 1), ints(0, 0), np.full(2, math.nan))
    yield "seats of another type than its row names: device 2 is of k80", Grants(one, ints(0), ints(2), nan)
    yield "name job 'a' twice", Grants(Rows(ints(0, 0), ints(0, 0)), ints(0, 1), ints(0, 1), np.full(2, math.nan))
    yield "job 'c' is granted seats on k80, where it cannot run", Grants(Rows(ints(2), ints(1)), ints(0), ints(2), nan)


def all_nonsense() -> list[Nonsense]:
    """Return every answer that must be refused, with its kind and the rule."""
    found: list[Nonsense] = []
    own: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {"shares": _shares, "order": _orders, "grants": _grants}
    for kind, answers in own.items():
        plain: Any = PLAIN[kind]
        with_rows: Any = PLAIN["shares of rows"] if kind == "shares" else plain
        found += [(kind, rule, answer) for rule, answer in _of_every_kind(plain)]
        found += [(kind, rule, replace(with_rows, rows=rows)) for rule, rows in _of_rows(with_rows.rows)
                  if not (kind == "shares" and rows is None)]  # fmt: skip
        found += [(kind, rule, answer) for rule, answer in answers()]
    return found
