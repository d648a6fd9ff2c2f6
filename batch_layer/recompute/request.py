"""What somebody asks a recompute for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Self

from master_dataset.errors import RequestError

Mode = Literal["publish", "preview"]


@dataclass(frozen=True)
class Asked:
    """Empty means everything. A `partial` question keeps the published cut.

    `first`, `last`: UTC days of `happened_at`, both included. `stores`: only days on which one of them has events.
    `wait`: at a cut that covers everything received before the call. `mode`: a preview publishes nothing.
    """

    views: Sequence[str] = ()
    first: date | None = None
    last: date | None = None
    stores: Sequence[str] = ()
    full: bool = False
    wait: bool = False
    mode: Mode = "publish"

    def __post_init__(self) -> None:
        """RequestError if the days are the wrong way round."""
        if self.first and self.last and self.first > self.last:
            raise RequestError(f"from `{self.first}` is after to `{self.last}`", do="swap them")

    @property
    def is_partial(self) -> bool:
        """Whether only chosen views, days or stores are recomputed."""
        return bool(self.views or self.first or self.last or self.stores)

    def shown(self) -> dict[str, Any]:
        """As REST and the record have it."""
        return {
            "views": list(self.views), "from": self.first and self.first.isoformat(),
            "to": self.last and self.last.isoformat(), "stores": list(self.stores), "full": self.full,
            "wait": self.wait, "mode": self.mode,
        }  # fmt: skip

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> Self:
        """The inverse of `shown`."""
        first, last = (date.fromisoformat(shown[name]) if shown[name] else None for name in ("from", "to"))
        return cls(
            tuple(shown["views"]), first, last, tuple(shown["stores"]), shown["full"], shown["wait"], shown["mode"]
        )
