"""By how much a number changed, exactly."""

from fractions import Fraction


def change(now: Fraction | None, before: Fraction | None) -> Fraction | None:
    """(now - before) / abs(before), in percent; None if either is not known, or nothing was there before."""
    if now is None or not before:
        return None
    return 100 * (now - before) / abs(before)


def change_points(now: Fraction | None, before: Fraction | None) -> Fraction | None:
    """How many points lie between percentages, now - before; None if either is not known."""
    return None if now is None or before is None else now - before
