"""Who asks: anybody, or the operator of this stack, who holds its key.

All are coroutines without an `await`: FastAPI would hand plain functions to a thread, which costs more than an answer.
"""

import hmac
from typing import Annotated

from fastapi import Depends, Header, Request

from serving_layer.answers import Answers
from serving_layer.freshness import Freshness
from serving_layer.operations import Operations
from serving_layer.refusals import KeyMissing, KeyWrong

OPERATOR = "operator"
"""Who did what was asked for with the key: there is one key, so no name is known."""

Authorization = Annotated[str | None, Header(include_in_schema=False)]


async def answers_of(request: Request) -> Answers:
    """The answers that the app was made with."""
    answers: Answers = request.app.state.answers
    return answers


async def freshness_of(request: Request) -> Freshness:
    """The freshness that the app was made with."""
    freshness: Freshness = request.app.state.freshness
    return freshness


async def operations_of(request: Request) -> Operations:
    """The operations that the app was made with."""
    operations: Operations = request.app.state.operations
    return operations


async def is_operator(request: Request, authorization: Authorization = None) -> bool:
    """Whether the request carries the operator's key. A wrong key is no error: it shows what anybody sees."""
    key: str = request.app.state.operator_key
    sent = (authorization or "").removeprefix("Bearer ")
    return bool(key) and hmac.compare_digest(sent.encode(), key.encode())


async def operator_of(
    authorization: Authorization = None, *, by_operator: Annotated[bool, Depends(is_operator)]
) -> str:
    """Who asks, where only the operator may. KeyMissing, KeyWrong."""
    do = "Send `Authorization: Bearer` and the key in `operator.key` of the home."
    if not authorization:
        raise KeyMissing("Only the operator may ask this, and the request has no key.", do=do)
    if not by_operator:
        raise KeyWrong("The key of the request is not the operator's.", do=do)
    return OPERATOR


AnswersOf = Annotated[Answers, Depends(answers_of)]
FreshnessOf = Annotated[Freshness, Depends(freshness_of)]
OperationsOf = Annotated[Operations, Depends(operations_of)]
ByOperator = Annotated[bool, Depends(is_operator)]
Operator = Annotated[str, Depends(operator_of)]
