"""How often Python looks for garbage: seldom, since what our processes make in numbers lives long or dies by itself."""

import gc

YOUNG_OBJECTS = 50_000
"""Python's own 700 has every cell of an answer looked at again and again: reading a million took twice as long."""


def look_seldom() -> None:
    """Call once, when a process starts. Cycles are still found."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
