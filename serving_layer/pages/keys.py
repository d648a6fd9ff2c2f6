"""`/keys`: the API keys, without their secrets; create and revoke them with forms. For operators."""

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, NamedTuple

from fastapi import Query, Response
from fastapi.responses import RedirectResponse

from master_dataset.errors import GalateaError
from master_dataset.fields import ID_BYTES
from serving_layer.api.caller import audit_details
from serving_layer.api.parameters import DEFAULT_TENANT
from serving_layer.errors import BadQuestionError
from serving_layer.keys.key import SCOPES, Key, Scope, checked_name_of_key, checked_scopes
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.routing import Form, OperatorVisit, Visit, page_router
from serving_layer.saved.addresses import readable

router = page_router()
PATH = "/keys"
SCOPE_TEXTS: dict[Scope, str] = {
    "read": gettext_noop("read numbers and stores, save views, and share pages by link for up to 90 days"),
    "ingest": gettext_noop("send events"),
    "configure": gettext_noop(
        "change alert rules, webhooks, floor plans and annotations, and what other keys saved or shared"
    ),
    "operate": gettext_noop("recompute, roll back and fix dead letters; all tenants only"),
}
USUAL_DAYS, MAX_DAYS, MAX_DIGITS = 365, 3650, 4
ACTIVE, EXPIRED, REVOKED, UNSIGNED = (
    gettext_noop("active"),
    gettext_noop("expired"),
    gettext_noop("revoked"),
    gettext_noop("unsigned"),
)


class ListedKey(NamedTuple):
    """A key and its state in words."""

    key: Key
    state: str

    @property
    def is_active(self) -> bool:
        """Whether requests with it are accepted."""
        return self.state == ACTIVE


@router.get(PATH)
async def get_keys(visit: OperatorVisit, revoked: Annotated[str, Query(max_length=64)] = "") -> Response:
    """All keys, those that are accepted first. `revoked`: the key that has just been revoked."""
    return await _keys_page(visit, Form(), revoked=revoked)


@router.post(PATH)
async def create_key(visit: OperatorVisit) -> Response:
    """Create a key and show it, once; or the form again with the error."""
    form = await visit.form()
    try:
        text, key = _new_key(form, (await visit.fresh()).at)
        await visit.operations.keys.keep(key)
        audit_details(visit.request.scope, key.id)
    except GalateaError as error:
        return await _keys_page(visit, form, error=error)
    return await _keys_page(visit, Form(), created=text)


@router.post(f"{PATH}/revoke")
async def revoke_key(visit: OperatorVisit) -> Response:
    """Revoke a key; it is refused within two seconds; while Cassandra does not respond, within five."""
    form = await visit.form()
    id_, now = form.text("id"), (await visit.fresh()).at
    audit_details(visit.request.scope, id_)
    await visit.operations.keys.end(id_, lambda key: key.revoked(now))
    return RedirectResponse(f"{PATH}?revoked={id_}", HTTPStatus.SEE_OTHER)


def _new_key(form: Form, now: datetime) -> tuple[str, Key]:
    """The text and the record of the key that the form describes. RequestError and UnknownNameError if it is wrong."""
    tenant, name, days = form.text("tenant") or DEFAULT_TENANT, form.text("name"), form.text("days") or str(USUAL_DAYS)
    if len(tenant.encode()) > ID_BYTES:
        raise BadQuestionError(_("The tenant is too long."), do=_("Write a shorter one."))
    readable(tenant, "tenant", ID_BYTES)  # as of the tenants of stores
    scopes = checked_scopes(tenant, form.get("scopes", []))
    if not scopes:
        raise BadQuestionError(_("A key needs at least one permission."), do=_("Choose what the key may do."))
    if not (days.isascii() and days.isdecimal() and len(days) <= MAX_DIGITS and 1 <= int(days) <= MAX_DAYS):
        raise BadQuestionError(
            _("A key cannot be valid for that long."), do=_("Write 1 to {most}.").format(most=MAX_DAYS)
        )
    return Key.new(tenant, scopes, checked_name_of_key(name), now, now + timedelta(days=int(days)))


def _state(key: Key, now: datetime) -> str:
    if key.revoked_at:
        return REVOKED
    return ACTIVE if key.is_valid(now) else EXPIRED if key.is_signed else UNSIGNED


async def _keys_page(
    visit: Visit, form: Form, *, created: str = "", revoked: str = "", error: GalateaError | None = None
) -> Response:
    fresh = await visit.fresh()
    keys = sorted(await visit.operations.keys.keys(), key=lambda key: key.created_at, reverse=True)
    listed = [ListedKey(key, _state(key, fresh.at)) for key in keys]
    values = {
        "keys": sorted(listed, key=lambda each: not each.is_active),
        "scopes": SCOPES,
        "scope_texts": SCOPE_TEXTS,
        "tenants": sorted({store.tenant for store in await visit.queries.stores()} | {DEFAULT_TENANT}),
        "usual_days": USUAL_DAYS,
        "max_days": MAX_DAYS,
        "form": form,
        "created": created,
        "revoked": revoked if any(each.key.id == revoked and each.key.revoked_at for each in listed) else "",
        "error": error,
    }
    response = visit.page("keys.html", fresh, values, status=error.status if error else HTTPStatus.OK)
    response.headers["Cache-Control"] = "no-store"
    return response
