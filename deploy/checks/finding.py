"""The result of one check."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from master_dataset.errors import GalateaError


class Finding(NamedTuple):
    """One result. `do` is the next step, "" if there is none. If `blocks`, nothing starts until it is fixed."""

    check: str
    ok: bool
    found: str
    do: str = ""
    blocks: bool = False


class Group(NamedTuple):
    """The findings about one system."""

    name: str
    findings: Sequence[Finding]


def good(check: str, found: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(check, ok=True, found=found)


def hint(check: str, found: str, do: str) -> Finding:
    """Return a finding that hinders nothing, and what can be done about it some time."""
    return Finding(check, ok=True, found=found, do=do)


def fault(check: str, found: str, do: str, *, blocks: bool = True) -> Finding:
    """Return a finding that needs something; by default before anything can start."""
    return Finding(check, ok=False, found=found, do=do, blocks=blocks)


def failed(check: str, error: GalateaError, do: str = "", *, blocks: bool = True) -> Finding:
    """Return the finding of a check that could not be done. `do`: a next step that fits better than the error's."""
    return fault(check, error.message, do or error.do, blocks=blocks)


def attempt(check: str, look: Callable[[], str], *, blocks: bool = True) -> Finding:
    """Return what `look` found, or why it failed."""
    try:
        return good(check, look())
    except GalateaError as error:
        return failed(check, error, blocks=blocks)
