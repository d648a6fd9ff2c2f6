"""How many requests of a key are under way at once, in this process."""

from collections import Counter
from collections.abc import Callable

from serving_layer.errors import TooManyAtOnce
from serving_layer.keys.caller import Caller


class Concurrency:
    """Each key of a tenant has its own, and so have all together who send none; the operator's has none."""

    def __init__(self, most: int) -> None:
        """`most`: of one key."""
        self._most = most
        self._now: Counter[str] = Counter()

    def enter(self, caller: Caller) -> Callable[[int], None] | None:
        """Count one more; what is given is done when it ends, None where nothing is counted. TooManyAtOnce."""
        if caller.tenant is None:
            return None
        name = caller.name
        if self._now[name] >= self._most:
            message = f"{self._most} requests of this key are under way already."
            raise TooManyAtOnce(message, do="Wait for an answer, then ask again.")
        self._now[name] += 1
        return lambda _: self._leave(name)

    def _leave(self, name: str) -> None:
        self._now[name] -= 1
        if not self._now[name]:
            del self._now[name]
