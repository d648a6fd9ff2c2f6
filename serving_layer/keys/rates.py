"""How often a key may ask: a window of one second that moves, in this process."""

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from serving_layer.errors import TooOften
from serving_layer.keys.caller import Caller
from serving_layer.keys.key import Scope


class Rates:
    """Each key of a tenant has its own; the operator's has none, and neither has whoever is on this machine."""

    def __init__(self, reads: int, ingests: int) -> None:
        """Requests a second of one key, for each purpose."""
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        few, many = RateLimitItemPerSecond(reads), RateLimitItemPerSecond(ingests)
        self._items = {"read": few, "configure": few, "ingest": many}

    def count(self, caller: Caller, scope: Scope) -> None:
        """TooOften beyond what the scope allows."""
        item = self._items.get(scope)
        if caller.tenant is None or item is None:
            return
        if not self._limiter.hit(item, scope, caller.name):
            message = f"This key may ask {item.amount} times a second for `{scope}`."
            raise TooOften(message, do="Wait a second, then ask again.")
