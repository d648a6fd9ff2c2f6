"""Share links: whoever has one can open one page without a key, and nothing else (ADR 0059).

The token of a link has 256 random bits, and only its digest is stored. In REST, the script of a shared page sends it in
the header `Authorization: Share TOKEN`: no cookie stands for it, so nothing else in the browser can use it.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from cachetools import LRUCache
from starlette.types import Scope

from master_dataset.errors import CassandraUnavailableError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.errors import (
    BadAddressError,
    BadQuestionError,
    ShareEndedError,
    TooManySavedError,
    UnknownShareError,
)
from serving_layer.fair_semaphore import OneAtATime
from serving_layer.keys.key import Caller
from serving_layer.keys.throttle import LookupThrottle
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.saved import ShareEntry
from serving_layer.saved.addresses import SHARED_PATH, PageAddress, shown_stores
from serving_layer.saved.views import new_id, require_key, require_own

MIN_HOURS, MAX_HOURS = 1, 90 * 24
"""How long a link may live."""
KEPT_SECONDS = 30 * 86_400
"""How long a link that has ended still says so, and is listed."""
MAX_SHARES = 200
"""Links of one tenant that have not ended."""
KEPT_FACTOR = 5
"""How many times as many links of one tenant are kept, with those that have ended."""
REFRESH_SECONDS = 2.0
"""How long a link may be used in one process after it was revoked in another."""
STALE_SECONDS = 5.0
"""Links that could not be read again for this long are no longer accepted: one of them may have been revoked."""
WRONG_TOKENS_PER_MINUTE = 10
"""Unknown ones of one address, in one process; then few are looked up at once."""
MAX_KNOWN = 10_000
"""Links that a process keeps in memory; it reads others again."""
_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[\w-]{43}", re.ASCII)
_SCHEME = "share "
State = Literal["open", "expired", "revoked"]


@dataclass(frozen=True)
class ShareLink:
    """A link to one page.

    `stores`: those that it shows; None for all of the tenant. `origin`: which may show the page in a frame; empty for
    none. `made_by`: the id of the key that made it. `revoked_at`: None unless somebody revoked it.
    """

    tenant: str
    id: str
    address: str
    stores: frozenset[str] | None
    origin: str
    made_by: str
    made_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None

    def state(self, now: datetime) -> State:
        """Whether it can be opened, and if not, why."""
        if self.revoked_at is not None:
            return "revoked"
        return "open" if now < self.expires_at else "expired"

    @property
    def caller(self) -> Caller:
        """The caller that whoever has the link is."""
        return Caller(f"share-{self.id}", self.tenant, frozenset({"read"}), self.stores, share=self.id)

    def response(self, now: datetime, token: str | None = None) -> ShareEntry:
        """As the API shows it. `token`: only right after it was made."""
        made = {} if token is None else {"path": f"{SHARED_PATH}{token}"}
        return ShareEntry(
            id=self.id,
            tenant=self.tenant,
            address=self.address,
            stores=None if self.stores is None else sorted(self.stores),
            origin=self.origin or None,
            made_by=self.made_by,
            made_at=iso_instant(self.made_at),
            expires_at=iso_instant(self.expires_at),
            revoked_at=iso_instant(self.revoked_at),
            state=self.state(now),
            **made,
        )


class ShareStore(Protocol):
    """Where links are stored. Every method raises CassandraUnavailableError."""

    async def all(self, tenant: str | None) -> Sequence[ShareLink]:
        """Those of the tenant, None for all tenants, in no fixed order."""

    async def find(self, digest: bytes) -> ShareLink | None:
        """The link with the token of that digest; None if there is none, or not any more."""

    async def add(self, digest: bytes, link: ShareLink, seconds: int) -> None:
        """Store a new link for so many seconds."""

    async def change(self, link: ShareLink, seconds: int) -> None:
        """Replace the link of this id for so many seconds."""


class SharedQueries(Protocol):
    """What the pages of links ask REST."""

    async def admits(self, of: Scope, link: ShareLink) -> bool:
        """Whether the request with this ASGI scope is one that the page of the link makes."""


def token_in(authorization: str | None) -> str | None:
    """The token in a header `Authorization: Share TOKEN`; None if it is of another kind, or there is none."""
    if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return authorization[len(_SCHEME) :].strip()


class ShareLinks:
    """Makes, lists, opens and revokes links. One per process and event loop."""

    def __init__(
        self,
        store: ShareStore,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        origins: Sequence[str] = (),
        most: int = MAX_SHARES,
    ) -> None:
        """Nothing is read yet.

        Args:
            store: where links are.
            now: by which links expire.
            clock: monotonic seconds, for refreshes.
            origins: those that may show pages in frames; none: no link can be embedded.
            most: links of one tenant that have not ended.
        """
        self._store, self.now, self._clock = store, now, clock
        self.origins, self.most = tuple(origins), most
        self._adding = OneAtATime()
        self._known: LRUCache[bytes, tuple[float, ShareLink]] = LRUCache(MAX_KNOWN)
        self._lookups = LookupThrottle("share links", WRONG_TOKENS_PER_MINUTE, clock)

    async def make(
        self, caller: Caller, page: tuple[PageAddress, str], hours: int, origin: str, stores: Mapping[str, Store]
    ) -> tuple[str, ShareLink]:
        """Make a link to a page.

        Args:
            caller: who makes it, and sees its stores.
            page: its address, of `require_page`, and the tenant whose stores it shows if it shows all.
            hours: after which it expires.
            origin: which may show it in a frame; empty for none.
            stores: every registered store by id.

        Returns:
            The token, which is shown only once, and the link.

        Raises:
            ApiKeyMissingError: the caller has no key.
            BadAddressError: the page cannot be shared.
            BadQuestionError: `hours` or `origin` is not allowed.
            UnknownNameError: the caller sees no registered store of that id.
            TooManySavedError: the tenant has as many open links as it may have, or too many that have ended lately.
        """
        require_key(caller)
        if not MIN_HOURS <= hours <= MAX_HOURS:
            message = f"A link cannot be valid for {hours} hours."
            raise BadQuestionError(message, do=f"Use {MIN_HOURS} to {MAX_HOURS:,} hours.")
        if origin and origin not in self.origins:
            do = "Leave `origin` out, or let the operator list it in `GALATEA_API_EMBED_ORIGINS`."
            raise BadQuestionError("Pages may not be shown in frames of this `origin`.", do=do)
        address, tenant = page
        shown = shown_stores(address)
        if shown is not None and not shown:  # in Cassandra, no stores and all stores would be the same
            raise BadAddressError("This page shows no store.", do="Choose at least one, and share it then.")
        for store in shown or ():
            if store not in stores or not caller.sees(stores[store]):
                raise UnknownNameError("store", store, [id_ for id_, each in stores.items() if caller.sees(each)])
            tenant = stores[store].tenant
        async with self._adding.hold(tenant):
            await self._require_room(tenant, caller)
            now = self.now()
            token, expires_at = secrets.token_urlsafe(_TOKEN_BYTES), now + timedelta(hours=hours)
            link = ShareLink(tenant, new_id(), address.text, shown, origin, caller.name, now, expires_at)
            await self._store.add(_digest(token), link, hours * 3600 + KEPT_SECONDS)
        return token, link

    async def _require_room(self, tenant: str, caller: Caller) -> None:
        """Links that have ended count for the key that made them, so that no key takes the room of others."""
        kept, now = await self._store.all(tenant), self.now()
        if sum(each.state(now) == "open" for each in kept) >= self.most:
            message = f"The tenant `{tenant}` already has {self.most} open share links, the maximum."
            raise TooManySavedError(message, do="Revoke some that are no longer needed.")
        own = sum(each.made_by == caller.name for each in kept)
        if own >= KEPT_FACTOR * self.most:
            message = f"This key has made {own:,} share links, most of which have ended."
            do = f"Use another key, or wait: those that have ended are forgotten after {KEPT_SECONDS // 86_400} days."
            raise TooManySavedError(message, do=do)

    async def listed(self, caller: Caller) -> list[ShareLink]:
        """The links that the key made; with the scope `configure`, all of its tenant or tenants. Newest first."""
        found = await self._store.all(caller.tenant)
        own = [each for each in found if caller.may_configure or each.made_by == caller.name]
        return sorted(own, key=lambda link: (link.made_at, link.id), reverse=True)

    async def revoke(self, caller: Caller, id_: str) -> None:
        """End a link, here at once and elsewhere within `REFRESH_SECONDS`.

        Raises:
            ApiKeyMissingError: the caller has no key.
            UnknownNameError: the tenant has no link of this id.
            ScopeMissingError: another key made it, and this one may not configure.
        """
        require_key(caller)
        link = next((each for each in await self._store.all(caller.tenant) if each.id == id_), None)
        if link is None:
            raise UnknownNameError("share link", id_, (), do="`GET /v1/shares` lists those that there are.")
        require_own(caller, link.made_by, "share link")
        now = self.now()
        if link.state(now) == "open":
            await self._store.change(replace(link, revoked_at=now), KEPT_SECONDS)
        self._known.clear()

    async def open(self, token: str, client: str) -> ShareLink:
        """The link of a token, which has not ended. Raises what `find` and `require_open` raise."""
        link = await self.find(token, client)
        self.require_open(link)
        return link

    def require_open(self, link: ShareLink) -> None:
        """Raise ShareEndedError if the link has expired or was revoked."""
        state = link.state(self.now())
        if state != "open":
            message = f"This share link {'has expired' if state == 'expired' else 'was revoked'}."
            raise ShareEndedError(message, do="Ask the sender for a new link.")

    async def find(self, token: str, client: str) -> ShareLink:
        """The link of a token, also if it has ended.

        Args:
            token: from anybody, so it may be anything.
            client: address of whoever sends it.

        Raises:
            UnknownShareError: there is no such link.
            RateLimitedError: there is no such link, as of too many other tokens from this address, or too many wait.
            CassandraUnavailableError: the link could not be read for `STALE_SECONDS`.
        """
        digest = _digest(token)
        link = await self._found(digest, client) if _TOKEN.fullmatch(token) else None
        if link is None:
            raise UnknownShareError("There is no such share link.", do="Ask the sender for a new link.")
        return link

    async def _found(self, digest: bytes, client: str) -> ShareLink | None:
        known = self._known.get(digest)
        began = self._clock()
        if known is not None and began - known[0] < REFRESH_SECONDS:
            return known[1]
        try:
            if known is None:
                link = await self._lookups.look_up(client, lambda: self._store.find(digest))
            else:
                link = await self._store.find(digest)
        except CassandraUnavailableError:
            if known is None or began - known[0] >= STALE_SECONDS:
                raise
            return known[1]
        if link is None:
            self._known.pop(digest, None)
        else:
            self._known[digest] = began, link
        return link


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
