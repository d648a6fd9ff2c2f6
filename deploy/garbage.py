"""How often Python looks for garbage: seldom, since what our processes make in numbers lives long or dies by itself."""

import gc

YOUNG_OBJECTS = 50_000
"""Python's own 700 has every cell of an answer looked at again and again: reading a million took twice as long."""


def look_seldom() -> None:
    """Call once, when a process starts. Cycles are still found."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)


def look_no_more_at_these() -> None:
    """Call once, when a process has what it lives with: to walk its modules again holds every request up for long."""
    gc.collect()
    gc.freeze()
