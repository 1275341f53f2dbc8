"""The manifest with the least rights of a service on Kubernetes: its account, and what that may do."""

from __future__ import annotations

import re

from eunomia.inputs.problems import InvalidInput, Problem

LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
TEXT = """\
# What a service may do: eunomia world kubernetes manifests --namespace NAMESPACE | kubectl apply -f -
# Run it as the account `eunomia` of that namespace.
apiVersion: v1
kind: ServiceAccount
metadata: { name: eunomia, namespace: NAMESPACE }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: eunomia, namespace: NAMESPACE }
rules:
  - { apiGroups: [batch], resources: [jobs], verbs: [get, list, create, patch, delete] }
  - { apiGroups: [""], resources: [pods], verbs: [get, list] }
  - { apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, patch] }   # one service acts
  - { apiGroups: [""], resources: [pods/binding], verbs: [create] }
  - { apiGroups: [""], resources: [events], verbs: [create, patch] }                         # why a Job waits
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: eunomia, namespace: NAMESPACE }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: eunomia }
subjects: [{ kind: ServiceAccount, name: eunomia, namespace: NAMESPACE }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: eunomia }
rules:
  - { apiGroups: [""], resources: [nodes], verbs: [get, list, patch] }   # patch: to cordon
  - { apiGroups: [""], resources: [pods], verbs: [list] }                # what others hold
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: eunomia-NAMESPACE }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: eunomia }
subjects: [{ kind: ServiceAccount, name: eunomia, namespace: NAMESPACE }]
"""


def manifest(namespace: str = "eunomia") -> str:
    """Return the objects for `kubectl apply`, as YAML. Raises InvalidInput for what names no namespace."""
    if not LABEL.fullmatch(namespace):
        rule = "a namespace has at most 63 lower-case letters, digits and hyphens, with no hyphen at its ends"
        problem = Problem(file="command line", column="--namespace", value=namespace, rule=rule, fix="such as lab-2")
        raise InvalidInput([problem])
    return TEXT.replace("NAMESPACE", namespace)
