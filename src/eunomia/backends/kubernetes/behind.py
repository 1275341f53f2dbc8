"""Kubernetes with users who create Jobs: those that name our scheduler wait until we bind their pods.

Kubernetes runs the users' own pods, so there is no supervisor: how a Job ended is what its conditions say. To preempt
one it is suspended, which deletes its pods with their grace and counts no failure; on servers that cannot suspend its
parallelism is set to 0. Jobs are known by their uid, as a name may be used again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod
from lightkube.types import PatchType

from eunomia.backends.engines.engine import (
    OVER,
    RUNS,
    EngineEnd,
    EngineGang,
    EngineRefused,
    GangRequest,
    HeldSubmission,
    Mark,
    SubmissionMissing,
)
from eunomia.backends.kubernetes.answers import answers
from eunomia.backends.kubernetes.engine import Kubernetes
from eunomia.backends.kubernetes.objects import MARK, SCHEDULER
from eunomia.backends.kubernetes.user_jobs import (
    FAILED,
    PLACES,
    QUEUE,
    WIDTH,
    UserJob,
    document,
    places_of,
    user_jobs,
)

FIRST = 0  # epoch in the mark of a Job that was taken over and not started yet
SHOWN_GONE = 5  # lists in which a Job that was deleted is still named, as ended
_log = logging.getLogger(__name__)


class KubernetesBehind(Kubernetes):
    """The namespace, with Jobs of users; jobs of the service without one are started as `Kubernetes` does."""

    adopts = True

    def __init__(self, *of_engine: Any, queue_label: str = QUEUE) -> None:
        super().__init__(*of_engine)
        self._queue_label = queue_label
        self._users: dict[str, UserJob] = {}  # in the last list, by uid
        self._gone: dict[str, tuple[UserJob, int]] = {}  # deleted ones, and in how many lists since
        self._suspends: bool | None = None  # whether the server can; None = not asked yet

    # ---- lists ---------------------------------------------------------------------------------------------------

    def gangs(self) -> list[EngineGang]:
        """Bind the pods of users' Jobs that were placed, and return all gangs; a Job that was deleted has ended."""
        found = super().gangs()
        with answers():
            users, held_by = self._read_users()
            self._gone |= {uid: (one, 0) for uid, one in self._users.items()}
            self._gone = {uid: gone for uid, gone in self._gone.items() if uid not in users}
            self._users = users
            self._bind_users()
        found += [EngineGang(uid, one.mark, one.phase, one.state, is_held=one.is_held) for uid, one in users.items()]
        for uid, (one, lists) in list(self._gone.items()):
            if held_by[uid]:
                found.append(EngineGang(uid, one.mark, RUNS, "DELETING"))
            else:
                found.append(EngineGang(uid, one.mark, OVER, "DELETED"))
                self._gone[uid] = one, lists + 1
                if lists + 1 >= SHOWN_GONE:
                    self._events.forget(uid)
                    del self._gone[uid]
        return found

    def _read_users(self) -> tuple[dict[str, UserJob], Counter[str]]:
        """Return the Jobs of users, and how many pods of each uid are on nodes, also of Jobs that are deleted."""
        jobs = list(self._client.list(Job, labels={self._queue_label: None}))
        pods = list(self._client.list(Pod, labels={"job-name": None}))  # after the Jobs: a pod's Job is known
        owners = Counter(owner.uid for pod in pods if pod.spec.nodeName for owner in pod.metadata.ownerReferences or [])
        return user_jobs(jobs, pods), owners

    def _user(self, uid: str) -> UserJob:
        """Return a Job as it is now. Raises SubmissionMissing."""
        found = self._read_users()[0].get(uid)
        if found is None:
            raise SubmissionMissing("its Job was deleted")
        return found

    def submissions(self, cluster: str, new_key: Callable[[], str]) -> list[HeldSubmission]:
        """Return the Jobs that wait and that no start was ordered for; each gets a mark that keeps its key."""
        found = []
        for one in self._users.values():
            mark, count = one.mark, one.width * one.per_pod(self._settings.resource)
            if one.phase == OVER or count < 1 or (mark is not None and mark.epoch != FIRST):
                continue
            tenant = str(one.job.metadata.labels[self._queue_label])
            if not one.waits_for_us:
                fix = f"write schedulerName: {SCHEDULER} in its pod template"
                self._events.say(one.job, "NotTakenOver", f"another scheduler places its pods; {fix}")
                continue
            if mark is None or mark.cluster != cluster:
                mark = Mark(cluster, new_key(), FIRST)
                with answers():
                    self._change(one, {"metadata": {"annotations": {MARK: str(mark)}}})
                self._events.say(one.job, "Queued", f"it waits as a job of tenant {tenant}")
            job = document(one, self._settings.resource, self._settings.type_labels)
            found.append(HeldSubmission(one.uid, mark.job_id, tenant, str(one.job.metadata.namespace), job))
        return found

    # ---- starts and stops ----------------------------------------------------------------------------------------

    def submit(self, request: GangRequest) -> str:
        """Place a user's Job and let its controller make pods; they are bound when all are there. Return its uid."""
        if not request.submission:
            return super().submit(request)
        with answers():
            self._leadership.keep(self.cluster)
            one = self._user(request.submission)
            mark = one.mark
            if mark is None or mark.cluster != request.mark.cluster:
                raise EngineRefused(f"Job {one.name} does not have our mark any more")
            if one.phase == OVER:
                raise SubmissionMissing(f"Job {one.name} is over: {one.state}")
            places = places_of(request.parts, one.per_pod(self._settings.resource))
            shown = ",".join(f"{node}={count}" for node, count in places.items())
            notes = {MARK: str(request.mark), PLACES: shown, FAILED: str(one.failed_pods), WIDTH: None}
            spec: dict[str, Any] = {"suspend": False} if one.job.spec.suspend else {}
            if one.job.spec.parallelism == 0:
                spec["parallelism"] = one.width
            self._change(one, {"metadata": {"annotations": notes}, "spec": spec})
        self._events.say(one.job, "Placed", f"its pods go to {shown.replace('=', ' × ').replace(',', ', ')}")
        return one.uid

    def _bind_users(self) -> None:
        """Bind the pods of each Job that was placed: at first all or none, later those that replace others."""
        placed = [
            one for one in self._users.values()
            if one.mark is not None and one.mark.cluster == self.cluster and one.mark.epoch != FIRST
            and not one.is_held and one.phase != OVER and one.unbound
        ]  # fmt: skip
        if not placed:
            return
        room = self._room()
        for one in placed:
            per_pod, places, waiting = one.per_pod(self._settings.resource), one.places, one.unbound
            if not one.bound and len(waiting) < one.width:
                continue  # its controller has not made them all
            asked = Counter({node: pods * per_pod for node, pods in places.items()})
            if lacking := room.lacking(asked):
                self._events.say(one.job, "Waiting", lacking)
                if not one.bound:
                    continue
            for pod, node in zip(waiting, places.elements(), strict=False):
                if room.take(node, per_pod):
                    self._bind_to(pod, node)

    def call_back(self, request: GangRequest, number: str) -> None:
        """Suspend a user's Job: its pods get SIGTERM and, after their grace, SIGKILL."""
        if request.submission:
            self._hold(request)

    def cancel(self, request: GangRequest, number: str, *, only_waiting: bool = False) -> None:
        """Suspend a user's Job; delete one of ours."""
        if request.submission:
            self._hold(request)
        else:
            super().cancel(request, number, only_waiting=only_waiting)

    def _hold(self, request: GangRequest) -> None:
        with answers():
            try:
                one = self._user(request.submission)
            except SubmissionMissing:
                return
            if one.mark != request.mark or one.phase == OVER or one.is_held:
                return
            if self._can_suspend():
                self._change(one, {"spec": {"suspend": True}})
            else:
                notes = {WIDTH: str(one.job.spec.parallelism if one.job.spec.parallelism is not None else 1)}
                self._change(one, {"metadata": {"annotations": notes}, "spec": {"parallelism": 0}})
        self._events.say(one.job, "Stopped", f"start {request.mark.epoch} was called back")

    def _can_suspend(self) -> bool:
        """Ask the server, by a creation that is not carried out: one that cannot suspend drops the field."""
        if self._suspends is None:
            container = {"name": "main", "image": "none"}
            probe = Job.from_dict({
                "metadata": {"generateName": "eunomia-probe-"},
                "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
            })  # fmt: skip
            self._suspends = self._client.create(probe, dry_run=True).spec.suspend is True
            if not self._suspends:
                _log.info("the server cannot suspend Jobs: their parallelism is set to 0 instead")
        return self._suspends

    def _change(self, one: UserJob, change: dict[str, Any]) -> None:
        """Change a Job, if it is still the one that was read."""
        meta = {**change.get("metadata", {}), "uid": one.uid}
        self._client.patch(Job, one.name, {**change, "metadata": meta}, patch_type=PatchType.MERGE)

    def ended(self, request: GangRequest, number: str) -> EngineEnd | None:
        """Return how a gang ended that is not listed."""
        if not request.submission:
            return super().ended(request, number)
        with answers():
            users, held_by = self._read_users()
        one = users.get(request.submission)
        if one is None:
            return None if held_by[request.submission] else EngineEnd("DELETED")
        return EngineEnd(one.state) if one.phase == OVER else None

    def explain(self, number: str, why: str) -> None:
        """Write an Event on the Job that waits."""
        if number in self._users:
            self._events.say(self._users[number].job, "Waiting", why)
