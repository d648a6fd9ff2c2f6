"""Which requests a tap harms, and how."""

from dataclasses import dataclass
from enum import StrEnum

from lab.fault_proxy.frame import Api


class Action(StrEnum):
    """What happens to a request that a rule hits."""

    DROP_RESPONSE = "drop_response"
    """It is forwarded, its answer swallowed, and both connections end: a lost acknowledgement."""
    DROP_REQUEST = "drop_request"
    """It is not forwarded, and nobody is told: a lost request."""
    REFUSE = "refuse"
    """It is not forwarded but answered, just before the next answer, with an error that passes: so few copies are in
    step at the moment. The requests behind it are on their way by then."""
    REFUSE_AT_ONCE = "refuse_at_once"
    """The same for who has one request on its way and waits: answered after the pattern of the last answer."""
    HOLD = "hold"
    """It is kept, and both connections end; `Tap.release` sends it later: a request that the network delayed."""
    HOLD_SILENTLY = "hold_silently"
    """It is kept, and the connection stays as it is: whoever asked waits until its own patience ends."""


@dataclass
class Rule:
    """Hits the `first` request of this kind, counted from 1 since it was given, then `every` so many, `most` times.

    `topic` is needed to refuse. `passed` and `hits` say what has happened.
    """

    api: Api
    action: Action
    first: int = 1
    every: int = 0
    most: int = 1
    topic: str = ""
    passed: int = 0
    hits: int = 0

    def takes(self, api: int) -> bool:
        """Count one request; whether it is one to harm."""
        if api != self.api or self.hits == self.most:
            return False
        self.passed += 1
        behind = self.passed - self.first
        hit = behind == 0 or (behind > 0 and self.every > 0 and behind % self.every == 0)
        self.hits += hit
        return hit
