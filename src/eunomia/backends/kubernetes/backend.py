"""`[world] backend = "kubernetes"`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from eunomia.backends.engines.backend import EngineBackend
from eunomia.backends.engines.engine import Engine
from eunomia.backends.inputs import BackendInputs
from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem


class KubernetesBackend(EngineBackend):
    """Gangs are Jobs of the Kubernetes cluster that the settings of kubectl name, or in which this process runs."""

    @staticmethod
    def engine_of(options: Mapping[str, Any]) -> Engine:  # type: ignore[override]
        """Return the cluster, with the options of [world.kubernetes]. Raises InvalidInput without settings for it."""
        check_options(options)
        import httpx2
        from lightkube import Client, KubeConfig
        from lightkube.core.exceptions import ConfigError

        from eunomia.backends.kubernetes.behind import KubernetesBehind
        from eunomia.backends.kubernetes.engine import Kubernetes
        from eunomia.backends.kubernetes.objects import TYPE_LABELS, PodSettings

        try:
            config = KubeConfig.from_env().get(context_name=options.get("context") or None)
        except ConfigError as error:
            raise _refused("context", str(error), "set KUBECONFIG, or run this in a pod") from error
        assert config is not None
        client = Client(
            config, namespace=options.get("namespace") or None, timeout=httpx2.Timeout(float(options["timeout_s"]))
        )
        labels = [str(options["type_label"])] if options.get("type_label") else TYPE_LABELS
        keys = ("image", "resource", "claim", "mount")
        settings = PodSettings(type_labels=labels, **{key: str(options[key]) for key in keys})
        if options.get("adopt_submissions"):
            return KubernetesBehind(client, settings, queue_label=str(options["queue_label"]))
        return Kubernetes(client, settings)

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here, and without lightkube or an image."""
        super().check(inputs)
        check_options(inputs.options)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise InvalidInput without the package or without an image for the pods."""
    if find_spec("lightkube") is None:
        raise _refused("backend", "it needs the package lightkube", install_command("kubernetes"))
    if not options.get("image") and not options.get("adopt_submissions"):
        fix = "name an image with Python, such as python:3.12, or your own"
        raise _refused("kubernetes.image", "the pods of gangs need an image", fix)


def _refused(key: str, rule: str, fix: str) -> InvalidInput:
    return InvalidInput([Problem(file=f"[world] {key}", rule=rule, fix=fix)])
