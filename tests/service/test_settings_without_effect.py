"""A setting that the running policy does not go by is refused, or the answer names policies that do, on every way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, Bench, LiveService

import eunomia
from eunomia.policies import POLICIES, build
from eunomia.scenario import scenario_from_dict
from eunomia.service.client import ServiceRefusal
from eunomia.service.messages import ChangeJob, Reply, Request
from eunomia.service.site import load_site
from eunomia.service.site_change import difference
from eunomia.setup.policy_settings import DEFAULTS, GOING_BY, TAKEN

SITE = "[service]\n[cluster]\naccelerators = { cpu = 4 }\n[policy]\nname = 'NAME'\n"
NEEDED = {"las": "las?quantum=60", "pop": "pop?parts=2"}
# A value of each setting, as a document, a request or a file gives it.
GIVEN: dict[str, Any] = {
    "weight": 3.0, "deadline_s": 500.0,
    "tenants.weight": 3.0, "tenants.quota": 1.0, "tenants.may_borrow": False, "tenants.inner": "fifo",
}  # fmt: skip
OF_JOBS = [name for name in GIVEN if "." not in name]
# Who goes by what, and who does not.
KNOWS = [
    ("las", set()),
    ("fifo", set()),
    ("by_weight", {"weight"}),
    ("edf", {"deadline_s"}),
    ("max_min_fairness", {"weight"}),
    ("slurm_fair_share", {"tenants.weight"}),
    ("kueue_fair_share", {"tenants.weight", "tenants.quota", "tenants.may_borrow"}),
    ("quotas?inner=by_weight", {"weight", "tenants.weight", "tenants.quota", "tenants.may_borrow"}),
    ("quotas?inner=fifo", {"tenants.weight", "tenants.quota", "tenants.may_borrow"}),
    ("hierarchical", {"weight", "tenants.weight", "tenants.inner"}),
    ("astraea", {"weight", "tenants.weight", "tenants.quota"}),
    ("philly", {"tenants.weight", "tenants.quota", "tenants.may_borrow"}),
]
EACH = pytest.mark.parametrize(("policy", "known"), KNOWS, ids=[name for name, _ in KNOWS])


def text_of(policy: str, tables: str = "") -> str:
    return SITE.replace("NAME", policy if policy != "las" else "las?quantum=60") + tables


def toml(setting: str) -> str:
    value = GIVEN[setting]
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"[tenants]\nlab = {{ {setting.partition('.')[2]} = {shown} }}\n"


@EACH
def test_a_submission_and_a_change_of_a_job(tmp_path: Path, policy: str, known: set[str]) -> None:
    bench = Bench(tmp_path, text_of(policy))
    for setting in OF_JOBS:
        reply = bench.submit(**{setting: GIVEN[setting]})
        assert (reply.status == 201) is (setting in known or setting in TAKEN), setting
        assert bool(reply.body.get("notes")) is (setting in TAKEN and setting not in known), setting
        job = bench.submit().body["id"]
        (changed,) = bench.do(Request(ChangeJob(job, {setting: GIVEN[setting]}), ANN))
        assert isinstance(changed, Reply) and (changed.status == 200) is (setting in known or setting in TAKEN)
        assert bool(changed.body.get("notes")) is (setting in TAKEN and setting not in known), setting
        for one in (reply, changed):
            assert all(name in note for note in one.body.get("notes", ()) for name in GOING_BY[setting])
        default = DEFAULTS[setting]
        assert bench.submit(**({setting: default} if default is not None else {})).status == 201  # which says nothing


@EACH
def test_a_site_file_and_a_change_of_the_policy(tmp_path: Path, policy: str, known: set[str]) -> None:
    file = tmp_path / "site.toml"
    for setting in set(GIVEN) - set(OF_JOBS):
        file.write_text(text_of(policy, toml(setting)))
        site = load_site(file)
        said = [note for note in site.setup.notes if note.startswith(f"{setting} of lab changes no decision")]
        assert bool(said) is (setting not in known), setting
        assert all(name in note for note in said for name in GOING_BY[setting])
        file.write_text(text_of(GOING_BY[setting][0], toml(setting)))
        shown = difference(load_site(file), site).shown
        assert [note for note in shown.get("notes", ()) if note in said] == said


def test_a_request_about_a_tenant(live: LiveService) -> None:
    for policy, known in (("las", set()), ("quotas", {"tenants.weight", "tenants.quota", "tenants.may_borrow"})):
        if live.process is None:
            (live.folder / "site.toml").write_text(
                text_of(policy).replace("[service]", '[service]\nlisten = "127.0.0.1:0"')
            )
            live.start()
        else:
            live.operator.send("PUT", "/v1/policy", {"name": policy})
        for setting in set(GIVEN) - set(OF_JOBS):
            for query in ("?dry_run=true", ""):
                body = {setting.partition(".")[2]: GIVEN[setting]}
                if setting in known or setting in TAKEN:
                    said = live.operator.send("PUT", f"/v1/tenants/lab{query}", body)
                    assert bool(said.get("notes")) is (setting not in known), said
                    continue
                with pytest.raises(ServiceRefusal) as refused:
                    live.operator.send("PUT", f"/v1/tenants/lab{query}", body)
                assert refused.value.status == 422
                assert "does not go by it" in str(refused.value.problems)


def test_a_deadline_that_is_changed_reaches_the_policy(tmp_path: Path) -> None:
    bench = Bench(tmp_path, text_of("edf").replace("cpu = 4", "cpu = 1"))
    late, soon = (bench.submit(deadline_s=s, duration_s=10).body["id"] for s in (500.0, 900.0))
    bench.do(Request(ChangeJob(soon, {"deadline_s": 100.0}), ANN))
    state = bench.controller.scheduler.state
    assert state.jobs.deadline[state.row_of[soon]] == 100.0
    assert bench.controller.rows[soon].seats and not bench.controller.rows[late].seats


def test_every_policy_that_is_named_goes_by_what_it_is_named_for() -> None:
    for setting, names in GOING_BY.items():
        assert all(build(name).info.knows(setting) for name in names), setting


def test_a_policy_of_ones_own_goes_by_what_it_sees_unless_its_card_says_less() -> None:
    card = build("fifo").info
    for needs, settings, known in (
        ({"tenants"}, None, True), ({"tenants"}, frozenset({"weight"}), False), (set(), None, False),
    ):  # fmt: skip
        info = replace(card, needs=card.needs | needs, tenant_settings=settings)
        assert info.knows("tenants.quota") is known
    assert not build("shrinking?inner=fifo").info.knows("tenants.quota")
    assert not build("shrinking?inner=quotas").info.knows("tenants.inner")


def played(policy: str, jobs: Path, tenants: dict[str, Any]) -> list[Any]:
    scenario = {
        "cluster": {"nodes": [{"type": "v100", "count": 2, "accelerators": 2}], "prices": {"v100": 1.0}},
        "workload": {"trace": str(jobs)}, "throughputs": {"source": "uniform"}, "tenants": tenants,
        "policy": {"name": policy},
    }  # fmt: skip
    found = eunomia.simulate(scenario_from_dict(scenario, jobs.parent))
    return [found.jobs[name].tolist() for name in ("first_started_s", "finished_s")]


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"metis", "learned_order", "learned_pairs", "harmony"}))
def test_what_a_policy_does_not_go_by_changes_nothing(tmp_path: Path, policy: str) -> None:
    info = build(NEEDED.get(policy, policy)).info
    head = "job_id,submitted_s,scale_factor,job_type,duration_s,tenant,weight,deadline_s\n"
    rows = [(f"j{n}", 40 * n, 1 + n % 2, 300 + 37 * (n % 5), "ab"[n % 3 == 0]) for n in range(12)]
    ends = {}
    for is_set in (False, True):
        given = {name: value for name, value in GIVEN.items() if is_set and not info.knows(name)}
        file = tmp_path / f"{is_set}.csv"
        file.write_text(head + "".join(
            f"{name},{at},{size},any,{run},{tenant},{given.get('weight', 1.0) if n % 2 else 1.0},"
            f"{at + 700 if 'deadline_s' in given and n % 2 else ''}\n"
            for n, (name, at, size, run, tenant) in enumerate(rows)
        ))  # fmt: skip
        options = {"weight": 1.0} | {name.partition(".")[2]: value for name, value in given.items() if "." in name}
        ends[is_set] = played(NEEDED.get(policy, policy), file, {"a": options})
    assert ends[True] == ends[False]


def test_cpus_memory_and_accelerators_beyond_any_node_are_refused(tmp_path: Path) -> None:
    nodes = (
        "[{ type = 'a100', count = 2, accelerators = 2, cpus = 64, memory_gib = 256 }, "
        "{ type = 'k80', accelerators = 4, cpus = 16, memory_gib = 32 }]"
    )
    text = text_of("fifo").replace("[service]", "[service]\nmade_up = true")
    bench = Bench(tmp_path, text.replace("accelerators = { cpu = 4 }", f"nodes = {nodes}"))
    for asked, field in (
        ({"cpus": 65}, "cpus"),
        ({"memory_gib": 4000}, "memory_gib"),
        ({"memory_gib": 33, "types": ["k80"]}, "memory_gib"),
        ({"memory_gib": 513, "accelerators": 2}, "memory_gib"),  # of two nodes
        ({"accelerators": 5}, "accelerators"),
    ):
        reply = bench.submit(**asked)
        assert (reply.status, [one.field for one in reply.problems]) == (422, [field]), asked
    for fits in ({"cpus": 64, "memory_gib": 256}, {"memory_gib": 512, "accelerators": 2}, {"accelerators": 4}):
        assert bench.submit(**fits).status == 201, fits


def test_where_nodes_declare_nothing_this_machine_is_what_there_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path, text_of("fifo"))
    reply = bench.submit(BOB, cpus=100_000, memory_gib=1e6)
    assert [one.field for one in reply.problems] == ["cpus", "memory_gib"]
    assert "no node has so much" in reply.problems[0].rule
