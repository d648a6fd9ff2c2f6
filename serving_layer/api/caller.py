"""Who asks: anybody, or the operator of this stack, who holds its key.

All are coroutines without an `await`: FastAPI would hand plain functions to a thread, which costs more than an answer.
"""

import hmac
from typing import Annotated

from fastapi import Depends, Header, Request

from serving_layer.answers import Answers
from serving_layer.freshness import Freshness


async def answers_of(request: Request) -> Answers:
    """The answers that the app was made with."""
    answers: Answers = request.app.state.answers
    return answers


async def freshness_of(request: Request) -> Freshness:
    """The freshness that the app was made with."""
    freshness: Freshness = request.app.state.freshness
    return freshness


async def is_operator(
    request: Request, authorization: Annotated[str | None, Header(include_in_schema=False)] = None
) -> bool:
    """Whether the request carries the operator's key. A wrong key is no error: it shows what anybody sees."""
    key: str = request.app.state.operator_key
    sent = (authorization or "").removeprefix("Bearer ")
    return bool(key) and hmac.compare_digest(sent.encode(), key.encode())


AnswersOf = Annotated[Answers, Depends(answers_of)]
FreshnessOf = Annotated[Freshness, Depends(freshness_of)]
ByOperator = Annotated[bool, Depends(is_operator)]
