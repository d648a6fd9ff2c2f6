"""Annotations, saved views and share links."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from serving_layer.responses.encoding import Instant

Day = Annotated[str, Meta(extra_json_schema={"format": "date"})]


class AnnotationEntry(Struct):
    """A note on the days from `first_day` to `last_day`, both included. `stores`: empty for all of the tenant.

    `made_by`: the id of the key, or `command`.
    """

    id: str
    tenant: str
    first_day: Day
    last_day: Day
    kind: Literal["promotion", "campaign", "holiday", "outage", "note"]
    text: str
    stores: Sequence[str]
    made_by: str
    made_at: Instant


class AnnotationPage(Struct):
    """Annotations by first day. `next`: the `after` of the next page, null on the last."""

    annotations: Sequence[AnnotationEntry]
    next: str | None


class LoadedAnnotations(Struct):
    """`loaded`: annotations of the file. `count`: all that the tenant has now."""

    tenant: str
    loaded: int
    count: int


class SavedViewEntry(Struct):
    """A page under a name. `address`: its path and query. `made_by`: the id of the key that saved it."""

    id: str
    name: str
    address: str
    made_by: str
    made_at: Instant


class SavedViewList(Struct):
    """Saved views by name, and how many a tenant may have."""

    views: Sequence[SavedViewEntry]
    most: int


class ShareEntry(Struct):
    """A link that opens one page without a key.

    `stores`: those that it shows, null for all of the tenant. `origin`: which may show the page in a frame, null for
    none. `made_by`: the id of the key that made it. `path`: of the link, with its secret, only when it is made.
    """

    id: str
    tenant: str
    address: str
    stores: Sequence[str] | None
    origin: str | None
    made_by: str
    made_at: Instant
    expires_at: Instant
    revoked_at: Instant | None
    state: Literal["open", "expired", "revoked"]
    path: str | UnsetType = UNSET


class ShareList(Struct):
    """Share links, newest first, also those that ended in the last 30 days; and how many open ones a tenant may have.

    `origins`: those that may show pages in frames.
    """

    shares: Sequence[ShareEntry]
    most: int
    origins: Sequence[str]
