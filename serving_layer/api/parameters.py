"""Types of parameters that several routes share: ranges, page tokens, publications, tenants, names and reasons."""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Annotated, TypeVar

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from master_dataset.errors import UnknownNameError
from master_dataset.registry.tenants import ALL_TENANTS, require_tenant
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.errors import BadQuestionError
from serving_layer.keys.key import Caller
from serving_layer.query.ranges import RangeName
from serving_layer.service import QueryService

MAX_PAGE = 1000
"""Entries per page of a list."""
DEFAULT_TENANT = "default"
PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
"""Texts that are stored or passed to a command have no control characters."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT_OR_DAY = {"pattern": r"^([0-9]{4}-[0-9]{2}-[0-9]{2}(T.+)?|today|yesterday|-[0-9]{1,5}[dwmy])$"}
"""Only described: `read_bound` reports what is wrong in its own words."""
_ID = re.compile(r"(?:^|,)((?:\\[\\,]|[^,])*)")
_ESCAPED = re.compile(r"\\([\\,])")
MAX_ECHOED = 100
"""Characters of an argument that are repeated in a problem."""
_TOKEN = {"pattern": r"^[A-Za-z0-9_-]+=*$"}

Position = TypeVar("Position")

RangeStart = Annotated[
    str | None,
    Field(
        alias="from",
        max_length=40,
        description="First instant, local date, or day counted from today (`today`, `yesterday`, `-7d`, `-4w`, `-3m`, "
        "`-1y`); inclusive.",
        json_schema_extra=_INSTANT_OR_DAY,
    ),
]
RangeEnd = Annotated[
    str | None,
    Field(
        alias="to",
        max_length=40,
        description="Last instant, local date, or day counted from today; exclusive. Default: the end of today.",
        json_schema_extra=_INSTANT_OR_DAY,
    ),
]
NamedRange = Annotated[
    RangeName | None,
    Field(description="Instead of `from` and `to`: business days in the time zone of the answer."),
]
TimeZone = Annotated[str | None, Field(max_length=64, description="Default: the time zone of each store.")]
PartialFlag = Annotated[
    bool,
    Field(description="If the speed layer is unavailable, answer from batch alone and say so."),
]
AfterToken = Annotated[
    str | None, Field(max_length=2048, description="`next` of the previous page.", json_schema_extra=_TOKEN)
]

AsOfNumber = Annotated[
    int | None,
    Field(ge=0, le=MAX_PUBLICATION, description="Answer from this publication alone, exactly as it was published."),
]
TenantName = Annotated[
    str | None,
    Field(max_length=256, min_length=1, description="Only for keys of all tenants: which tenant."),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=PRINTABLE)]
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=PRINTABLE),
    Field(description="Kept in the history."),
]


def read_ids(texts: Sequence[str], argument: str = "store") -> list[str]:
    r"""The ids in arguments that are repeated or hold several, separated by commas.

    A comma in an id is written `\,`, and a backslash before a comma, a backslash or the end `\\`.

    Raises:
        BadQuestionError: there is nothing on one side of a comma.
    """
    found: list[str] = []
    for text in texts:
        ids = [_ESCAPED.sub(r"\1", each) for each in _ID.findall(text)]
        if len(ids) > 1 and not all(ids):
            message = f"`{argument}={text[:MAX_ECHOED]}` has a comma without an id beside it."
            raise BadQuestionError(message, do="Separate ids by one comma each, and write a comma in an id as `\\,`.")
        found += ids
    return found


def write_id(id_: str) -> str:
    """An id as an argument that `read_ids` reads."""
    return re.sub(r"\\(?=[\\,]|$)|,", r"\\\g<0>", id_)


STORES = "Store ids, repeated or separated by commas (a comma in an id: `\\,`); default: all registered stores."
StoreIds = Annotated[
    list[str],
    AfterValidator(read_ids),
    Field(description=STORES),
]
MOST_SELECTED = 1000
"""SKUs that one query may name, and categories or brands."""
_ONE_ID = r"(?:\\[\\,]|[^,\\]|\\(?![\\,]))+"
_LEVEL = r"[^/]*[^/\s][^/]*"
_IDS = {"pattern": rf"^{_ONE_ID}(,{_ONE_ID})*$"}
_CATEGORY = {"pattern": rf"^{_LEVEL}(/{_LEVEL})*$"}
"""Both are only described, as above."""
SkuIds = Annotated[
    list[Annotated[str, Field(min_length=1, json_schema_extra=_IDS)]],
    AfterValidator(partial(read_ids, argument="sku")),
    Field(max_length=MOST_SELECTED, description="Only these SKUs; repeated, or separated by commas as stores are."),
]
Categories = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=2000, json_schema_extra=_CATEGORY)]],
    Field(
        max_length=MOST_SELECTED,
        description="Only products of this category or one below it, by its path: `Food/Dairy`; repeated: of any.",
    ),
]
Brands = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]],
    Field(max_length=MOST_SELECTED, description="Only products of this brand; repeated: of any."),
]


def _require_text(day: object) -> object:
    """Reject numbers, also numeric texts: pydantic would read them as seconds since 1970."""
    if day is not None and not (isinstance(day, str) and _DAY.fullmatch(day)):
        raise ValueError("a day is a text such as `2026-11-21`")
    return day


Day = Annotated[date, BeforeValidator(_require_text)]


def tenant_of(caller: Caller, named: str | None, default: str) -> str:
    """The tenant that a request is about.

    Args:
        caller: whose key may be for one tenant or for all.
        named: the tenant that the request names; None if it names none.
        default: the tenant for keys of all tenants that name none.

    Raises:
        UnknownNameError: the request names another tenant than that of its key.
    """
    if caller.tenant is None:
        return named or default
    if named not in (None, caller.tenant):
        raise UnknownNameError("tenant", named or "", (), do="Leave `tenant` out.")
    return caller.tenant


async def registered_tenant(caller: Caller, named: str | None, answers: QueryService) -> str:
    """The tenant whose products, targets or annotations a request is about: for keys of all tenants, one with stores.

    Args:
        caller: whose key may be for one tenant or for all.
        named: the tenant that the request names; None if it names none.
        answers: knows the stores of all tenants.

    Raises:
        UnknownNameError: the tenant is `*` or has no stores, or the key is that of another one.
    """
    tenant = tenant_of(caller, named, DEFAULT_TENANT)
    if tenant == ALL_TENANTS:
        raise UnknownNameError("tenant", tenant, (), do="Name one tenant.")
    if caller.tenant is None:
        _, stores = await answers.stores.all()
        require_tenant(tenant, stores.values())
    return tenant


def page_token(*parts: object) -> str:
    """The token of the position where the next page begins. It is opaque to callers."""
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode()


def read_page_token(token: str, position: Callable[..., Position]) -> Position:
    """Read a token of `page_token`.

    Args:
        token: from a caller, so it may be anything.
        position: makes the position from the parts of the token; raises ValueError for invalid ones.

    Raises:
        BadQuestionError: the token is not one of `page_token`.
    """
    try:
        parts: object = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        return position(*(parts if isinstance(parts, list) else ()))  # without its parts, a position is a TypeError
    except (binascii.Error, ValueError, TypeError, IndexError, OverflowError, OSError) as error:
        message = "`after` is not a valid token."
        raise BadQuestionError(message, do="Use `next` of the page before, or leave it out.") from error
