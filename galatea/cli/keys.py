"""`galatea keys`: API keys."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.tenants import registered_stores, warn_of_unknown_tenants
from master_dataset.errors import RequestError, UnknownNameError
from serving_layer.keys.key import SCOPES, Key, checked_name_of_key, checked_scopes, checked_tenant_of_key
from serving_layer.tables import AsyncSession, KeyTables

app = typer.Typer(no_args_is_help=True, help="Create, list, rotate and revoke API keys.")
Id = Annotated[str, typer.Argument(metavar="ID", help="Id as shown by `keys list`.")]
Found = TypeVar("Found")


@app.command()
def create(
    tenant: Annotated[
        str, typer.Option("--tenant", help="Tenant whose stores the key can access; `*` for all tenants.")
    ],
    scope: Annotated[list[str], typer.Option("--scope", help=f"One of {', '.join(SCOPES)}; repeatable.")],
    name: Annotated[str, typer.Option("--name", help="Name, such as the holder's.")] = "",
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="Days until it expires.")] = 365,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it once. It becomes valid within two seconds."""
    now = datetime.now(UTC)
    checked_tenant_of_key(tenant)
    checked = checked_scopes(tenant, scope)
    text, key = Key.new(tenant, checked, checked_name_of_key(name), now, now + timedelta(days=days))
    _with(lambda tables: tables.keep(key))
    _shown(text, key, as_json=as_json)
    warn_of_unknown_tenants([tenant], registered_stores(Settings()))


@app.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """List the keys without their secrets, which are not stored."""
    keys = sorted(_with(lambda tables: tables.keys()), key=lambda key: key.created_at)
    if as_json:
        print_json({"keys": [_described(key) for key in keys]})
        return
    rows = [[str(value) for value in _described(key).values()] for key in keys]
    print_table(("id", "tenant", "scopes", "name", "created", "expires", "state"), rows)


@app.command()
def rotate(
    id_: Id,
    overlap: Annotated[
        int, typer.Option("--overlap", min=0, max=30 * 24, help="Hours for which both keys are valid.")
    ] = 24,
    as_json: AsJson = False,
) -> None:
    """Replace a key with a new one that has the same scopes. Both are valid during the overlap.

    The new key has a new id: saved views and share links stay with the old one, and with keys that may `configure`.
    """
    now = datetime.now(UTC)
    old = _signed(_found(id_))
    if old.revoked_at is not None:
        raise RequestError(f"The key `{id_}` is revoked.", do="galatea keys create")
    lasts = old.expires_at - old.created_at if old.expires_at else timedelta(days=365)
    text, new = Key.new(old.tenant, old.scopes, old.name, now, now + lasts)
    end = min(now + timedelta(hours=overlap), old.expires_at or datetime.max.replace(tzinfo=UTC))
    _with(lambda tables: tables.keep(new))  # stored first: two valid keys are better than none
    _shown(text, new, as_json=as_json)
    _with(lambda tables: tables.end(id_, lambda key: replace(_signed(key), expires_at=min(end, key.expires_at or end))))


@app.command()
def revoke(id_: Id, as_json: AsJson = False) -> None:
    """Revoke a key. It becomes invalid within two seconds; while Cassandra does not respond, within five."""
    now = datetime.now(UTC)
    revoked = _with(lambda tables: tables.end(id_, lambda key: key.revoked(now)))
    if as_json:
        print_json(_described(revoked))
    else:
        print_message(f"  {id_} of tenant `{revoked.tenant}` is revoked")


@app.command()
def sign(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids as shown by `keys list`.")],
    as_json: AsJson = False,
) -> None:
    """Accept keys whose rows this deployment has not written, as after a lost key file. Check who holds them first."""
    for id_ in ids:
        _found(id_)  # all of them exist, before one is signed

    async def all_of(tables: KeyTables) -> list[Key]:
        return [await tables.end(each, lambda key: replace(key, is_signed=True)) for each in ids]

    found = _with(all_of)
    if as_json:
        print_json({"keys": [_described(each) for each in found]})
        return
    for each in found:
        print_message(f"  {each.id} of tenant `{each.tenant}` is signed: {', '.join(sorted(each.scopes))}")


def _with(work: Callable[[KeyTables], Awaitable[Found]]) -> Found:
    from deploy.backup.mark import refuse_unfinished_restore
    from deploy.cassandra import session_of
    from deploy.secrets_key import secrets_key_of

    settings = Settings()
    session = session_of(settings.cassandra.address)
    refuse_unfinished_restore(session)

    async def done() -> Found:
        return await work(KeyTables(AsyncSession(session), secrets_key_of(settings)))

    return asyncio.run(done())


def _signed(key: Key) -> Key:
    """The key; RequestError if this deployment has not written it."""
    if not key.is_signed:
        message = f"The key `{key.id}` was not written by this deployment."
        do = f"If you know who has it: galatea keys sign {key.id}. If not: galatea keys revoke {key.id}"
        raise RequestError(message, do=do)
    return key


def _found(id_: str) -> Key:
    keys = {key.id: key for key in _with(lambda tables: tables.keys())}
    if id_ not in keys:
        raise UnknownNameError("key", id_, keys)
    return keys[id_]


def _shown(text: str, key: Key, *, as_json: bool) -> None:
    if as_json:
        print_json(_described(key) | {"key": text})
        return
    sys.stdout.write(f"{text}\n")  # only the key, so that a shell can read it: KEY=$(galatea keys create ...)
    print_message(
        f"  tenant `{key.tenant}`, {', '.join(sorted(key.scopes))}, until {key.expires_at:%F}; it is not shown again"
    )


def _described(key: Key) -> dict[str, Any]:
    is_good = key.is_valid(datetime.now(UTC))
    state = "revoked" if key.revoked_at else "good" if is_good else "expired" if key.is_signed else "unsigned"
    return {
        "id": key.id,
        "tenant": key.tenant,
        "scopes": sorted(key.scopes),
        "name": key.name,
        "created_at": f"{key.created_at:%FT%TZ}",
        "expires_at": f"{key.expires_at:%FT%TZ}" if key.expires_at else None,
        "state": state,
    }
