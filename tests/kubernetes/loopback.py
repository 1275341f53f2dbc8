"""A real API server of Kubernetes on this machine: etcd, kube-apiserver and kube-controller-manager on loopback.

Everything is in one folder, on free ports; the daemons are children of this process and end with `close`. There is no
scheduler and no kubelet: tests bind pods, and play the kubelet's part.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightkube import Client
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.models.core_v1 import NodeSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Namespace, Node, NodeStatus, Pod, PodStatus, Secret, ServiceAccount
from lightkube.types import CascadeType, PatchType
from tests.engines.loopback import NODES, end_all, free_ports, until

from eunomia.backends.kubernetes.answers import build_types

build_types(Namespace, NodeStatus, PodStatus, Secret, ServiceAccount)  # what the tests read besides, in threads, too
TOKEN = "admin-of-the-tests"
ACCOUNT, ACCOUNT_TOKEN = "system:serviceaccount:eunomia:eunomia", "account-of-the-manifest"
BUILT = ("kube-apiserver", "kube-controller-manager")


def programs() -> Path:
    """Return the folder where `tools/install_kubernetes --build` leaves what it builds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("EUNOMIA_KUBERNETES") or cache / "eunomia" / "kubernetes")


def why_not() -> str:
    """Return why a server cannot be started here; "" if it can."""
    missing = [name for name in ("etcd", "openssl") if shutil.which(name) is None]
    missing += [name for name in BUILT if not os.access(programs() / name, os.X_OK)]
    return f"{', '.join(missing)} not there: tools/install_kubernetes --build makes them, once" if missing else ""


class LoopbackServer:
    """The running API server, with the nodes of `NODES`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd, self._peer, self._port = free_ports(3)
        self.url = f"https://127.0.0.1:{self._port}"
        (folder / "etcd").mkdir(mode=0o700)
        subprocess.run(["openssl", "genrsa", "-out", str(folder / "sa.key"), "2048"], check=True, capture_output=True)
        public = ["openssl", "rsa", "-in", str(folder / "sa.key"), "-pubout", "-out", str(folder / "sa.pub")]
        subprocess.run(public, check=True, capture_output=True)
        (folder / "tokens.csv").write_text(
            f'{TOKEN},admin,admin,"system:masters"\n{ACCOUNT_TOKEN},{ACCOUNT},account,"system:serviceaccounts"\n'
        )
        self.config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "loop",
            "clusters": [{"name": "loop", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "admin", "user": {"token": TOKEN}},
                      {"name": "account", "user": {"token": ACCOUNT_TOKEN}}],
            "contexts": [{"name": "loop", "context": {"cluster": "loop", "user": "admin", "namespace": "default"}},
                         {"name": "account", "context": {"cluster": "loop", "user": "account",
                                                         "namespace": "eunomia"}}],
        }  # fmt: skip
        (folder / "kubeconfig").write_text(json.dumps(self.config))
        self.admin = self.client()
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def client(self, context: str = "loop", **options: Any) -> Client:
        """Return a new client, by default with an administrator's rights."""
        return Client(KubeConfig.from_dict(self.config).get(context_name=context), **options)

    def _start(self) -> None:
        folder, client_url, peer_url = self.folder, f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peer}"
        self._daemon(
            "etcd", "--data-dir", str(folder / "etcd"), "--listen-client-urls", client_url,
            "--advertise-client-urls", client_url, "--listen-peer-urls", peer_url, "--log-level", "error",
            "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}", "--unsafe-no-fsync",
        )  # fmt: skip
        self.start_server()
        self._daemon(
            str(programs() / "kube-controller-manager"), f"--kubeconfig={folder}/kubeconfig", "--leader-elect=false",
            "--controllers=job,garbagecollector,serviceaccount,namespace,podgc", "--port=0", "--secure-port=0",
        )  # fmt: skip
        until(lambda: self.has_account("default"), "the service account exists, so pods may be made")
        for name, (kind, count) in NODES.items():
            self.add_node(name, kind, count)

    def has_account(self, account: str, namespace: str = "default") -> bool:
        """Whether there is a service account: pods of a namespace need its default one."""
        try:
            self.admin.get(ServiceAccount, account, namespace=namespace)
        except ApiError:
            return False
        return True

    def start_server(self) -> None:
        """Start the API server, and wait until it is ready."""
        folder = self.folder
        self._daemon(
            str(programs() / "kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{self._etcd}",
            "--bind-address=127.0.0.1", f"--secure-port={self._port}", "--insecure-port=0",
            f"--cert-dir={folder}/certs", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={folder}/sa.key", f"--service-account-key-file={folder}/sa.pub",
            "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
            f"--token-auth-file={folder}/tokens.csv",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        )  # fmt: skip
        until(self.is_ready, "the API server is ready", 90.0)

    def is_ready(self) -> bool:
        """Whether the server says that it is ready: by its status, as the text says ok of parts before."""
        argv = ["curl", "-skf", "-m", "2", "-o", "/dev/null", "-H", f"Authorization: Bearer {TOKEN}"]
        argv.append(f"{self.url}/readyz")
        return subprocess.run(argv, check=False).returncode == 0

    def signal_server(self, number: int) -> None:
        """Send a signal to the API server."""
        self._daemons["kube-apiserver"].send_signal(number)

    def add_node(self, name: str, kind: str, count: int) -> None:
        """Make a node that is ready."""
        self.admin.create(Node(metadata=ObjectMeta(name=name, labels={"gpu-type": kind}), spec=NodeSpec()))
        room = {"cpu": "32", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(count)}
        ready = {"type": "Ready", "status": "True", "reason": "Test"}
        status: dict[str, Any] = {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}}
        self.admin.patch(NodeStatus, name, status, patch_type=PatchType.MERGE)

    def clear(self, namespace: str = "default") -> None:
        """Delete all Jobs and pods, and wait until they are gone."""
        for job in self.admin.list(Job, namespace=namespace):
            self.admin.delete(Job, job.metadata.name, namespace=namespace, cascade=CascadeType.BACKGROUND)
        until(lambda: self._has_none(namespace), "no pod is left")

    def _has_none(self, namespace: str) -> bool:
        pods = list(self.admin.list(Pod, namespace=namespace))
        for pod in pods:
            with suppress(ApiError):
                self.admin.delete(Pod, pod.metadata.name, namespace=namespace, grace_period=0)
        return not pods and not list(self.admin.list(Job, namespace=namespace))

    def _daemon(self, *argv: str) -> None:
        name = Path(argv[0]).name
        with open(self.folder / f"{name}.out", "ab") as out:
            self._daemons[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def close(self) -> None:
        """End the daemons."""
        self.admin.close()
        end_all(reversed(self._daemons.values()))
