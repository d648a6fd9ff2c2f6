"""A failing history, made as short as it still fails."""

from collections.abc import Sequence

from tests.fast.model.history import Chosen, lived, steps_of
from tests.fast.model.rules import Rule


def shortest(steps: Sequence[Chosen], without: Rule | None = None) -> list[Chosen]:
    """Leave out halves, then quarters, and so on down to single steps, as long as a difference is left."""
    kept = list(steps)
    size = max(1, len(kept) // 2)
    while size:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if lived(fewer, without).difference:
                kept = fewer
            else:
                start += size
        size //= 2
    return kept


def story(seed: int, without: Rule | None = None) -> str:
    """The seed, a line for each step that is needed, and how it ends."""
    ended = lived(shortest(steps_of(seed), without), without)
    lines = [f"  {number:3}  {line}" for number, line in enumerate(ended.lines, 1)]
    return "\n".join([f"seed {seed}", *lines, f"  ---  {ended.difference or 'no difference'}"])
