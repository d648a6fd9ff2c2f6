"""`galatea webhooks`: endpoints that receive alerts."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from getpass import getuser
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from deploy.console import print_fields, print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.tenants import registered_stores, warn_of_unknown_tenants
from master_dataset.errors import RequestError
from serving_layer.responses.encoding import fields_of

if TYPE_CHECKING:
    from master_dataset.webhooks.endpoint import RegisteredEndpoint
    from serving_layer.responses.webhooks import Webhook, WebhookTrial
    from serving_layer.webhooks.service import WebhookService

app = typer.Typer(no_args_is_help=True, help="Manage tenants' webhook endpoints and show their state.")
Id = Annotated[str, typer.Argument(metavar="ID", help="Id as shown by `webhooks list`.")]
Found = TypeVar("Found")
LISTED = ("id", "tenant", "url", "state", "since", "last_status", "last_delivered_at")


@app.command()
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="https://host/path")],
    tenant: Annotated[str, typer.Option("--tenant", help="Tenant whose alerts it receives.")],
    batch: Annotated[int, typer.Option("--batch", min=1, max=500, help="Maximum number of alerts per call.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Send a tenant's alerts to this URL from now on, and print the signing secret. It is not shown again."""
    made = _with(lambda hooks: hooks.make(tenant, url, batch))
    _show_secret(made, as_json=as_json)
    warn_of_unknown_tenants([tenant], registered_stores(Settings()))


@app.command("list")
def list_webhooks(as_json: AsJson = False) -> None:
    """List the endpoints and their states, without secrets."""
    found = [_webhook(each) for each in _with(lambda hooks: hooks.listed(None))]
    if as_json:
        print_json({"webhooks": found})
        return
    rows = [[*(_plain(getattr(each, name)) for name in LISTED), each.lag.records] for each in found]
    print_table((*(name.replace("_", " ") for name in LISTED), "left"), rows)


@app.command()
def show(id_: Id, as_json: AsJson = False) -> None:
    """Show the state of an endpoint, and what blocks it."""
    _shown(_with(lambda hooks: hooks.found(None, id_)), as_json=as_json)


@app.command()
def change(
    id_: Id,
    url: Annotated[str | None, typer.Option("--url", help="https://host/path")] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, max=500, help="Maximum number of alerts per call.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change the URL or the batch size. Delivery continues where it stopped."""

    async def changed(hooks: "WebhookService") -> "RegisteredEndpoint":
        return await hooks.change(await hooks.found(None, id_), url, batch)

    _shown(_with(changed), as_json=as_json)


@app.command()
def remove(id_: Id, as_json: AsJson = False) -> None:
    """Remove an endpoint."""

    async def removed(hooks: "WebhookService") -> "RegisteredEndpoint":
        found = await hooks.found(None, id_)
        await hooks.endpoints.remove(found.endpoint)
        return found

    _done(_with(removed), "is removed", as_json=as_json)


@app.command()
def resume(id_: Id, as_json: AsJson = False) -> None:
    """Resume a suspended endpoint. Delivery continues where it stopped."""

    async def resumed(hooks: "WebhookService") -> "RegisteredEndpoint":
        return await hooks.resume(await hooks.found(None, id_))

    _done(_with(resumed), "is resumed", as_json=as_json)


@app.command()
def rotate(id_: Id, as_json: AsJson = False) -> None:
    """Replace the signing secret, and print the new one. It is not shown again."""

    async def rotated(hooks: "WebhookService") -> "RegisteredEndpoint":
        return await hooks.rotate(await hooks.found(None, id_))

    _show_secret(_with(rotated), as_json=as_json)


@app.command("test")
def try_out(id_: Id, as_json: AsJson = False) -> None:
    """Send a signed test call without alerts, and print its result."""

    async def called(hooks: "WebhookService") -> "WebhookTrial":
        return await hooks.trying.call((await hooks.found(None, id_)).endpoint)

    trial = _with(called)
    if as_json:
        print_json(trial)
    else:
        said = trial.sentence or f"the endpoint answered {trial.status}"
        print_message(f"  {trial.outcome}: {said}, after {trial.milliseconds} ms")


@app.command()
def skip(
    id_: Id,
    record: Annotated[
        str, typer.Argument(metavar="RECORD", help="topic/partition/offset; not needed if only one record blocks.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Skip the blocking record. It becomes a dead letter."""

    async def skipped(hooks: "WebhookService") -> str:
        found = await hooks.found(None, id_)
        named = record or _only(found)
        await hooks.skip(found, named, getuser())
        return named

    named = _with(skipped)
    if as_json:
        print_json({"webhook": id_, "record": named})
    else:
        print_message(f"  {id_} skips {named}, which becomes a dead letter")


def _with(work: Callable[["WebhookService"], Awaitable[Found]]) -> Found:
    from deploy.webhooks.service import webhooks_of

    async def done() -> Found:
        return await work(webhooks_of(Settings()))

    return asyncio.run(done())


def _only(found: "RegisteredEndpoint") -> str:
    """Return the only blocking record. RequestError if there is none or more than one."""
    blocking = found.state.blocking
    if len(blocking) == 1:
        return blocking[0].id
    known = ", ".join(each.id for each in blocking)
    message = f"{len(blocking)} records block stores of `{found.endpoint.id}`"
    do = f"name one of them: {known}" if known else f"galatea webhooks show {found.endpoint.id}"
    raise RequestError(message, do=do)


def _webhook(found: "RegisteredEndpoint") -> "Webhook":
    from datetime import UTC, datetime

    from serving_layer.webhooks.service import webhook_response

    return webhook_response(found, datetime.now(UTC))


def _shown(found: "RegisteredEndpoint", *, as_json: bool) -> None:
    webhook = _webhook(found)
    if as_json:
        print_json(webhook)
        return
    said = {name: _plain(value) for name, value in fields_of(webhook).items() if name not in {"lag", "blocking"}}
    print_fields({**said, "left": f"{webhook.lag.records} records"})
    print_table(("record", "store", "since", "why"), [list(fields_of(each).values()) for each in webhook.blocking])


def _plain(value: object) -> str:
    return "" if value is None else str(value)


def _show_secret(made: "RegisteredEndpoint", *, as_json: bool) -> None:
    endpoint = made.endpoint
    if as_json:
        print_json({"id": endpoint.id, "secret": endpoint.secret})
        return
    print_message(f"  {endpoint.id} receives alerts within seconds. Its signing secret, which is not shown again:")
    sys.stdout.write(f"{endpoint.secret}\n")  # only the secret, so that a shell can read it


def _done(found: "RegisteredEndpoint", what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_webhook(found))
    else:
        print_message(f"  {found.endpoint.id} of tenant `{found.endpoint.tenant}` {what}")
