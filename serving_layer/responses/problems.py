"""Responses of `/problems`: what the codes of errors mean."""

from collections.abc import Sequence

from msgspec import Struct


class ProblemType(Struct, frozen=True):
    """What a code means. `type`: the path of this page; `acts`: who has to do something; `status`: of the response."""

    type: str
    code: str
    meaning: str
    acts: str
    status: int


class ProblemTypeList(Struct):
    """Every code, in order."""

    problems: Sequence[ProblemType]
