"""Who may use the service from here: `token create | list | revoke | rotate`, `login`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag, group, option
from eunomia.cli.service_session import (
    CaOption,
    ServiceSession,
    TokenFileOption,
    client_command,
    service_errors,
    show_lines,
    show_table,
)

token_app = group("Create, list, revoke and rotate tokens.")


@token_app.command("create")
@client_command
def token_create(
    session: ServiceSession,
    user: Annotated[str | None, option("NAME", "Whose token it is.")] = None,
    tenant: Annotated[str | None, option("NAME", "Tenant of the user.")] = None,
    role: Annotated[str | None, option("ROLE", "One of viewer, submitter, tenant-admin, operator.")] = None,
    days: Annotated[float | None, option("N", "Days until it expires.")] = None,
) -> None:
    """Create a token and print it, which happens once.

    For example: eunomia token create --user ann --tenant vision --role submitter
    """
    given = {"user": user, "tenant": tenant, "role": role, "expires_days": days}
    body = {key: value for key, value in given.items() if value is not None}
    found = session.client.send("POST", "/v1/tokens", body)
    session.show(found, lambda: print(found["token"]))


@token_app.command("list")
@client_command
def token_list(session: ServiceSession) -> None:
    """List tokens without their secrets.

    For example: eunomia token list
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (
                one["id"],
                one["user"],
                one["tenant"],
                one["role"],
                one["expires_at"] or "never",
                one["made_by"] or "",
                "" if one["holds"] else "revoked" if one["revoked"] else "ended",
            )
            for one in found["tokens"]
        ]
        show_table(("id", "user", "tenant", "role", "expires", "made by", ""), rows, "no tokens")

    session.watch(lambda: session.client.get("/v1/tokens"), show, False)


@token_app.command("revoke")
@client_command
def token_revoke(
    session: ServiceSession,
    token_id: Annotated[str, argument("ID", "Id of the token, as `eunomia token list` shows it.")],
    keep_children: Annotated[
        bool, flag("Keep the tokens that it made, as an operator may.", "--keep-children")
    ] = False,
) -> None:
    """Revoke a token at once, and with it the tokens that it made, and those that they made.

    For example: eunomia token revoke 3f21c0aa91d2
    """
    found = session.client.send("DELETE", f"/v1/tokens/{token_id}" + "?children=keep" * keep_children)
    ended = f", and {', '.join(found['ended'])}, which come from it" if found["ended"] else ""
    session.show(found, lambda: show_lines(f"{token_id}: revoked{ended}"))


@token_app.command("rotate")
@client_command
def token_rotate(session: ServiceSession) -> None:
    """Put a new operator's token into its file on the service's machine, and revoke the one that was there.

    Tokens that the old one made hold on. Without a token it works on that machine. For example: eunomia token rotate
    """
    found = session.client.send("POST", "/v1/tokens/rotate")
    ended = f"; revoked: {', '.join(found['revoked'])}" if found["revoked"] else ""
    lines = (
        f"{found['id']}: the operator's token is in {found['file']} now{ended}",
        "where the old one was remembered, type: eunomia login URL --token-file FILE",
    )
    session.show(found, lambda: show_lines(*lines))


@command
def login(
    output: Output,
    url: Annotated[str, argument("URL", "Where the service is, such as http://127.0.0.1:8642.")],
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Remember a service, its token, and the file of `--ca` for later commands.

    The token is read from the file, or from standard input; a unix socket needs none. For example: eunomia login
    http://127.0.0.1:8642
    """
    with service_errors(output.as_json):
        from eunomia.service.client import Address, Client, write_settings

        if token_file is None and url.startswith("unix:"):
            url, text = f"unix:{Path(url.removeprefix('unix:')).resolve()}", ""
        elif token_file is None and sys.stdin.isatty():
            import getpass

            text = getpass.getpass("token: ")
        else:
            text = sys.stdin.readline() if token_file is None else token_file.read_text()
        given = str(ca or os.environ.get("EUNOMIA_CA", ""))
        address = Address(url.rstrip("/"), text.strip(), given and os.path.abspath(given))
        Client(address).get("/v1/cluster")
        path = write_settings(address)
        output.show({"settings": str(path)}, f"remembered in {path}")
