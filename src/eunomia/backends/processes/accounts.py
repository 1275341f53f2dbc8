"""Accounts of this machine: where the service is root, a job runs under the account of who submitted it."""

from __future__ import annotations

import grp
import os
import pwd
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

NO_GROUP = 65534  # group of a user id without an account
CACHES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME")  # folders of the service's own user


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine. `name` is in its environment, the numbers are its rights."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a job with this person in place of the service's."""
        kept = {name: value for name, value in variables.items() if name not in CACHES}
        return kept | {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}

    def own(self, path: os.PathLike[str]) -> None:
        """Make a folder that only root could have changed this account's."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)


def account_of(user: str, fallback: str = "") -> Account | None:
    """Return the account under which the jobs of a user run; None = that of this process.

    Only root has a choice. A user without an account here, who came with a token, has that of `fallback`.
    """
    if os.geteuid() != 0:
        return None
    if number := re.fullmatch(r"uid([0-9]+)", user):  # as `principal_of` names a user id without an account
        uid = int(number[1])
        return Account(user, uid, NO_GROUP, (NO_GROUP,), "/", "/bin/sh")
    for name in filter(None, (user, fallback)):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            return None
        groups = tuple(os.getgrouplist(name, entry.pw_gid))
        return Account(name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, entry.pw_shell or "/bin/sh")
    return None


def has_account(name: str) -> bool:
    """Whether this machine has such an account."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def has_group(name: str) -> bool:
    """Whether this machine has such a group."""
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def groups_of(user: str) -> list[str]:
    """Return the groups of an account of this machine, a minute old at most; none for a user without one here."""
    return _groups_of(user, int(time.monotonic() // 60))


@lru_cache(maxsize=4096)
def _groups_of(user: str, minute: int) -> list[str]:
    """Return the groups of an account: a directory on the network may be asked for them."""
    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return []
    found = []
    for number in numbers:
        try:
            found.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue  # a group without a name
    return found
