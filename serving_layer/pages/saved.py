"""`/saved`: pages that were saved under a name, and links that share a page."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query, Response
from fastapi.responses import RedirectResponse

from serving_layer.api.caller import audit_change, audit_details
from serving_layer.api.saved import tenant_shown
from serving_layer.errors import BadQuestionError
from serving_layer.pages.language import gettext as _
from serving_layer.pages.pickers import names_of
from serving_layer.pages.routing import ReaderVisit, Visit, page_router
from serving_layer.saved.addresses import SHARED_PATH, PageAddress, parse_address, require_page
from serving_layer.saved.shares import ShareLink
from serving_layer.saved.views import MAX_NAME, require_key

router = page_router()
PATH = "/saved"
STORE_PATH = "/stores/"
MAX_BYTES = 16_384
_DIGITS = 5
Done = Literal["saved", "renamed", "removed", "revoked", ""]


@router.get(PATH)
async def get_saved(visit: ReaderVisit, done: Annotated[Done, Query()] = "") -> Response:
    """The saved views of the tenant, and the links that the visitor may revoke."""
    return await _page(visit, done=done)


@router.post(PATH)
async def post_saved(visit: ReaderVisit) -> Response:
    """Save, rename or remove a view, or make or revoke a link. The token of a link is shown in the answer alone."""
    require_key(visit.visitor.caller)
    audit_change(visit.request.scope, visit.visitor.caller)
    form = await visit.form(MAX_BYTES)
    caller, views, shares = visit.visitor.caller, visit.saved.views, visit.saved.shares
    action, id_ = form.text("do"), form.text("id")
    audit_details(visit.request.scope, action, id_)
    if action == "save":
        address = _address(visit, form.text("address"))
        view = await views.save(caller, form.text("name"), address, visit.saved.now())
        audit_details(visit.request.scope, action, view.id)
        return _back("saved")
    if action == "rename":
        await views.rename(caller, id_, form.text("name"))
        return _back("renamed")
    if action == "remove":
        await views.remove(caller, id_)
        return _back("removed")
    if action == "revoke":
        await shares.revoke(caller, id_)
        return _back("revoked")
    if action != "share":
        raise BadQuestionError("The form does not say what to do.", do="Open the page again, and send its form.")
    hours = form.text("hours")
    if not (hours.isascii() and hours.isdecimal() and len(hours) <= _DIGITS):
        raise BadQuestionError("The form does not say when the link expires.", do="Choose one of the times.")
    answers, address = visit.queries.service, _address(visit, form.text("address"))
    tenant = await tenant_shown(address, caller, form.text("tenant") or None, answers)
    _, stores = await answers.stores.all()
    token, link = await shares.make(caller, (address, tenant), int(hours), form.text("embedder"), stores)
    audit_details(visit.request.scope, action, link.id)
    return await _page(visit, made=link, token=token)


def _address(visit: Visit, text: str) -> PageAddress:
    address = parse_address(text)
    require_page(address, visit.request.app.routes)
    return address


def _back(done: Done) -> Response:
    return RedirectResponse(f"{PATH}?{urlencode({'done': done})}", HTTPStatus.SEE_OTHER)


def _title(link: ShareLink, names: Mapping[str, str]) -> str:
    """What the page of a link is called: the name of its store, or else of the page."""
    path = parse_address(link.address).decoded_path
    store = path.removeprefix(STORE_PATH)
    return _("Overview") if path == "/" else names.get(store, store)


async def _page(visit: Visit, *, done: Done = "", made: ShareLink | None = None, token: str = "") -> Response:
    caller, saved = visit.visitor.caller, visit.saved
    now = saved.shares.now()
    shares = [(link, link.state(now)) for link in await saved.shares.listed(caller)]
    names = names_of(await visit.queries.stores())
    values = {
        "done": done,
        "made": made,
        "made_path": f"{SHARED_PATH}{token}" if token else "",
        "views": await saved.views.listed(caller),
        "max_views": saved.views.most,
        "max_name": MAX_NAME,
        "shares": shares,
        "titles": {link.id: _title(link, names) for link, _state in shares},
    }
    status = HTTPStatus.CREATED if made else HTTPStatus.OK
    return visit.page("saved.html", await visit.fresh(), values, status=status)
