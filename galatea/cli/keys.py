"""`galatea keys`: who may ask what."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from master_dataset.errors import RequestError, UnknownNameError
from serving_layer.keys.key import ALL_TENANTS, SCOPES, Key, Scope
from serving_layer.tables import AsyncSession, KeyTables

app = typer.Typer(no_args_is_help=True, help="Create, list, rotate and revoke the keys of tenants.")
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Id = Annotated[str, typer.Argument(help="The part of the key that `keys list` shows.")]
Found = TypeVar("Found")


@app.command()
def create(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose stores it opens; `*` for those of all tenants.")],
    scope: Annotated[list[str], typer.Option("--scope", help=f"One of {', '.join(SCOPES)}; may be repeated.")],
    name: Annotated[str, typer.Option("--name", help="For people: who has it.")] = "",
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="How long it is good.")] = 365,
    as_json: AsJson = False,
) -> None:
    """Create a key and show it, once. It is good within five seconds."""
    now = datetime.now(UTC)
    text, key = Key.new(tenant, _scopes(tenant, scope), name, now, now + timedelta(days=days))
    _with(lambda tables: tables.keep(key))
    _shown(text, key, as_json=as_json)


@app.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """List the keys: never the keys themselves, which nobody has kept."""
    keys = sorted(_with(lambda tables: tables.keys()), key=lambda key: key.created_at)
    if as_json:
        print_json({"keys": [_told(key) for key in keys]})
        return
    rows = [[str(value) for value in _told(key).values()] for key in keys]
    print_table(("id", "tenant", "scopes", "name", "created", "expires", "state"), rows)


@app.command()
def rotate(
    id_: Id,
    overlap: Annotated[int, typer.Option("--overlap", min=0, max=30 * 24, help="Hours both are good.")] = 24,
    as_json: AsJson = False,
) -> None:
    """Create a key like that one, and let that one end soon."""
    now = datetime.now(UTC)
    old = _found(id_)
    lasts = old.expires_at - old.created_at if old.expires_at else timedelta(days=365)
    text, new = Key.new(old.tenant, old.scopes, old.name, now, now + lasts)
    end = min(now + timedelta(hours=overlap), old.expires_at or datetime.max.replace(tzinfo=UTC))

    async def both(tables: KeyTables) -> None:
        await tables.keep(new)  # first: better two keys than none
        await tables.keep(replace(old, expires_at=end))

    _with(both)
    _shown(text, new, as_json=as_json)


@app.command()
def revoke(id_: Id, as_json: AsJson = False) -> None:
    """Let a key open nothing any more, within five seconds."""
    old = _found(id_)
    revoked = replace(old, revoked_at=old.revoked_at or datetime.now(UTC))
    _with(lambda tables: tables.keep(revoked))
    if as_json:
        print_json(_told(revoked))
    else:
        print_message(f"  {id_} of tenant `{old.tenant}` opens nothing any more")


def _with(work: Callable[[KeyTables], Awaitable[Found]]) -> Found:
    from deploy.cassandra import session_of

    async def done() -> Found:
        return await work(KeyTables(AsyncSession(session_of(Settings().cassandra.address))))

    return asyncio.run(done())


def _found(id_: str) -> Key:
    keys = {key.id: key for key in _with(lambda tables: tables.keys())}
    if id_ not in keys:
        raise UnknownNameError("key", id_, keys)
    return keys[id_]


def _scopes(tenant: str, asked: list[str]) -> list[Scope]:
    """Raises UnknownNameError; RequestError for an operator of one tenant: a rebuild is everybody's."""
    for each in asked:
        if each not in SCOPES:
            raise UnknownNameError("scope", each, SCOPES)
    if "operate" in asked and tenant != ALL_TENANTS:
        message = "`operate` changes what every tenant is shown, so it is no scope of one tenant's key."
        raise RequestError(message, do="Use --tenant '*', or leave it out.")
    return [scope for scope in SCOPES if scope in asked]


def _shown(text: str, key: Key, *, as_json: bool) -> None:
    if as_json:
        print_json(_told(key) | {"key": text})
        return
    print_message(f"  {text}")
    print_message(
        f"  tenant `{key.tenant}`, {', '.join(sorted(key.scopes))}, until {key.expires_at:%F}; it is not shown again"
    )


def _told(key: Key) -> dict[str, Any]:
    state = "revoked" if key.revoked_at else "good" if key.is_valid(datetime.now(UTC)) else "expired"
    return {
        "id": key.id,
        "tenant": key.tenant,
        "scopes": sorted(key.scopes),
        "name": key.name,
        "created_at": f"{key.created_at:%FT%TZ}",
        "expires_at": f"{key.expires_at:%FT%TZ}" if key.expires_at else None,
        "state": state,
    }
