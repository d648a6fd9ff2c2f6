"""The version of the data that an answer is computed from: as new as `at_least` and `max_staleness` demand."""

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple, Protocol

from fastapi import Request
from pydantic import Field

from serving_layer.api.conditional_requests import AnswerProvenance, requires_fresh
from serving_layer.errors import BadQuestionError
from serving_layer.keys.key import Caller
from serving_layer.service import QueryService
from serving_layer.service import Request as AnswerRequest
from serving_layer.store.at_least import Demand
from serving_layer.store.snapshot import ReadVersion
from views.control.token import MOST_CHARACTERS, EventToken, InvalidTokenError, joined

AT_LEAST_HEADER = "Galatea-At-Least"
TOKEN_HEADER = "Galatea-Token"  # noqa: S105 - no secret
_SPAN = re.compile(r"(\d{1,9})(ms|s|m|h)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_DO = f"Send back what an answer or sent events had in `{TOKEN_HEADER}`."

AtLeastToken = Annotated[
    str | None,
    Field(
        max_length=MOST_CHARACTERS,
        description=f"A token from sent events or from an earlier answer: the answer contains all of that, or is 503 "
        f"`not_yet`. It has a token of its own in `{TOKEN_HEADER}`. Empty: only that.",
    ),
]
MaxStaleness = Annotated[
    str | None,
    Field(
        max_length=12,
        description="Such as `5s`: the answer contains everything that was received until so long before the request, "
        "or is 503 `not_yet`.",
    ),
]


class Demanding(Protocol):
    """Query parameters of a request that may demand how new its answer is."""

    at_least: str | None
    max_staleness: str | None


class AnswerVersion(NamedTuple):
    """The version of the data that an answer is computed from.

    Attributes:
        version: of the data.
        provenance: lets the response be cached; None if it may not be, because it is an answer to a demand.
        headers: of the response.
    """

    version: ReadVersion
    provenance: AnswerProvenance | None
    headers: Mapping[str, str]


async def read_answer_version(
    request: Request, answers: QueryService, asked: AnswerRequest, caller: Caller, query: Demanding
) -> AnswerVersion:
    """Read it, and wait until it is as new as demanded.

    Args:
        request: its headers may demand something, too.
        answers: reads it.
        asked: the request as the query service knows it.
        caller: whose stores are in the answer.
        query: the parameters.

    Raises:
        BadQuestionError: a demand cannot be read.
        GalateaError: see `QueryService.read_version`.
    """
    demand = demand_of(request, query)
    fresh = requires_fresh(request.headers.get("cache-control"))
    version = await answers.read_version(asked, caller, fresh=fresh, demand=demand)
    if demand is None:
        return AnswerVersion(version, AnswerProvenance(asked, version), {})
    return AnswerVersion(version, None, {TOKEN_HEADER: await answers.token(version)})


def demand_of(request: Request, query: Demanding) -> Demand | None:
    """What a request demands; None if it demands nothing. BadQuestionError if it cannot be read."""
    token, staleness = token_of(request, query.at_least), query.max_staleness
    if token is None and staleness is None:
        return None
    return Demand(token or EventToken(), None if staleness is None else _seconds(staleness))


def token_of(request: Request, argument: str | None = None) -> EventToken | None:
    """All that a request names in `at_least` and in the header; None if it has neither. BadQuestionError."""
    sent = request.headers.getlist(AT_LEAST_HEADER)
    if argument is None and not sent:
        return None
    if sum(map(len, sent)) > MOST_CHARACTERS:
        raise BadQuestionError(f"`{AT_LEAST_HEADER}` is longer than {MOST_CHARACTERS:,} characters.", do=_DO)
    texts = [(AT_LEAST_HEADER, text.strip()) for each in sent for text in each.split(",")]
    return joined(_read(name, text) for name, text in [("at_least", argument or ""), *texts])


def _read(name: str, text: str) -> EventToken:
    try:
        return EventToken.of_text(text)
    except InvalidTokenError as error:
        raise BadQuestionError(f"`{name}` {error}.", do=_DO) from error


def _seconds(text: str) -> float:
    found = _SPAN.fullmatch(text)
    if found is None:
        message = f"`max_staleness={text}` is not a valid duration."
        raise BadQuestionError(message, do="Write a whole number and `ms`, `s`, `m` or `h`, such as `5s`.")
    return int(found[1]) * _SECONDS[found[2]]
