"""What the rules are looked at with: the state, what holds at this moment of the log, and where alerts are told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from speed_layer.alerts.emitter import Telling
from speed_layer.alerts.state import Horizons, State
from views.alerts.rule import Rule
from views.alerts.rule_history import Numbered, Page
from views.alerts.shop_clock import ShopClock
from views.core.business_days import Span
from views.core.local_time import STEP

Kind = TypeVar("Kind", bound=Rule)


@dataclass(frozen=True)
class Look:
    """At one record of one (topic, partition)."""

    topic: str
    state: State
    page: Page
    horizons: Horizons
    telling: Telling

    def rules(self, kind: type[Kind], shop: ShopClock) -> Iterator[tuple[Numbered, Kind]]:
        """Of one kind that watch the store, in a fixed order."""
        for each in self.page.rules_of(self.topic, shop):
            if isinstance(each.rule, kind):
                yield each, each.rule

    def shops(self, stores: Sequence[str]) -> Iterator[ShopClock]:
        """Those that are registered, in a fixed order."""
        for store in sorted(stores):
            if store in self.page.shops:
                yield self.page.shops[store]

    def is_fresh(self, since_ms: int) -> bool:
        """Whether what became certain then is still worth telling."""
        return since_ms + ms(self.horizons.fresh) >= self.state.log_ms

    def sums(self, view: str, store: str, span: Span) -> list[int] | None:
        """The states of a view in a window; None: no event."""
        own = self.state.cells.get(view, {}).get(store, {})
        parts = [own[quarter] for quarter in range(span.start, span.end, STEP) if quarter in own]
        return [sum(each) for each in zip(*parts, strict=True)] if parts else None


def ms(length: timedelta) -> int:
    """In milliseconds."""
    return length // timedelta(milliseconds=1)
