"""`galatea webhooks`: who is told of alerts, and where."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from deploy.cli.output import answer, say, table
from deploy.settings import Settings

if TYPE_CHECKING:
    from master_dataset.endpoint_table import EndpointTable, Registered

app = typer.Typer(no_args_is_help=True, help="Say where tenants are told of alerts.")
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Id = Annotated[str, typer.Argument(help="As `webhooks list` shows it.")]


@app.command()
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="https://host/path")],
    tenant: Annotated[str, typer.Option("--tenant", help="Whose alerts it is told.")],
    batch: Annotated[int, typer.Option("--batch", min=1, max=500, help="Alerts of one call, at most.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Tell this address of a tenant's alerts from now on, and show the secret of its signatures, once."""
    from master_dataset.endpoint import Endpoint, new_secret, refuse_uncallable

    refuse_uncallable(url, is_plain_allowed=bool(Settings().webhook_networks))
    now = datetime.now(UTC)
    endpoint = Endpoint(uuid4().hex[:12], tenant, url, new_secret(), batch, int(now.timestamp() * 1000))
    _table().add(endpoint, now)
    _told_secret(endpoint.id, endpoint.secret, as_json=as_json)


@app.command("list")
def list_endpoints(as_json: AsJson = False) -> None:
    """List the addresses, and how each is doing. Secrets are shown to nobody."""
    found = _table().all()
    if as_json:
        answer({"webhooks": [_told(each) for each in found]})
        return
    rows = [[str(value) for value in _told(each).values()] for each in found]
    table(("id", "tenant", "url", "batch", "state", "waiting"), rows)


@app.command()
def remove(id_: Id, as_json: AsJson = False) -> None:
    """Tell it nothing more."""
    found = _table().find(id_)
    _table().remove(id_, datetime.now(UTC))
    _done(found, "is told nothing more", as_json=as_json)


@app.command()
def resume(id_: Id, as_json: AsJson = False) -> None:
    """Tell an address again that was suspended; it goes on where it stood."""
    found = _table().find(id_)
    _table().suspend(id_, None)
    _done(found, "is told again", as_json=as_json)


@app.command()
def rotate(id_: Id, as_json: AsJson = False) -> None:
    """Sign with another secret from now on, and show it, once."""
    from master_dataset.endpoint import new_secret

    _table().find(id_)
    secret = new_secret()
    _table().renew(id_, secret)
    _told_secret(id_, secret, as_json=as_json)


def _table() -> "EndpointTable":
    from deploy.cassandra import session_of
    from master_dataset.endpoint_table import EndpointTable

    return EndpointTable(session_of(Settings().cassandra_address))


def _told(found: "Registered") -> dict[str, Any]:
    endpoint = found.endpoint
    shown = {"id": endpoint.id, "tenant": endpoint.tenant, "url": endpoint.url, "batch": endpoint.batch}
    return {**shown, "state": found.state, "waiting": found.waiting}


def _told_secret(id_: str, secret: str, *, as_json: bool) -> None:
    if as_json:
        answer({"id": id_, "secret": secret})
        return
    say(f"  {id_} is told within seconds; its signatures are made with this secret, which is not shown again:")
    say(f"  {secret}")


def _done(found: "Registered", what: str, *, as_json: bool) -> None:
    if as_json:
        answer(_told(found))
    else:
        say(f"  {found.endpoint.id} of tenant `{found.endpoint.tenant}` {what}")
