"""How many people are inside: in and out added up in order, never below zero."""

from collections.abc import Iterable, Iterator


def inside(flows: Iterable[tuple[int, int]]) -> Iterator[int]:
    """After each window of a business day, o = max(0, o + in - out), from nobody at its start.

    The floor is ours: a camera that missed somebody who came in must not make later people vanish.
    """
    held = 0
    for people_in, people_out in flows:
        held = max(0, held + people_in - people_out)
        yield held
