"""What became of records that were handed over: done, to be tried again (a failure), or refused for good (an error)."""

from typing import NamedTuple


class Done(NamedTuple):
    """They need not be handed over again."""


class Again(NamedTuple):
    """It may work later. `after`: not before so many seconds, if whoever takes them said so. `why`: one sentence.

    `fewer`: it may work with fewer of them at once.
    """

    why: str
    after: float | None = None
    fewer: bool = False


class Refused(NamedTuple):
    """The same call would be refused again. `why`: one sentence, which never holds the value."""

    why: str


Verdict = Done | Again | Refused
