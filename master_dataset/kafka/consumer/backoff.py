"""How long to wait before the next try: full jitter, so that many who failed together do not come together again.

Source: Marc Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
"""

import random

FIRST_SECONDS = 0.25
MOST_ASKED_SECONDS = 3600.0
"""Nobody is waited for longer than this, whatever they ask for."""
_CHANCE = random.SystemRandom()
_DOUBLINGS = 20


def seconds(tries: int, most: float, asked: float | None = None) -> float:
    """Between 0 and min(most, FIRST_SECONDS x 2^tries); never less than was `asked` for."""
    drawn = _CHANCE.uniform(0, min(most, FIRST_SECONDS * 2 ** min(tries, _DOUBLINGS)))
    return drawn if asked is None else max(drawn, min(asked, MOST_ASKED_SECONDS))
