"""Seeded chance. Each thing draws from a stream of its own, so that no order of making changes anything."""

from math import exp
from random import Random


def chance(*words: str) -> Random:
    """Give the stream that these words name, from its beginning."""
    return Random("\0".join(words))  # noqa: S311 - to be repeated, not to be secret


def poisson(stream: Random, mean: float) -> int:
    """Draw how many of independent things happen, when `mean` of them do on average. For means below some hundreds."""
    limit, product, number = exp(-mean), stream.random(), 0
    while product > limit:
        product *= stream.random()
        number += 1
    return number
