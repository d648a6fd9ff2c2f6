"""What a recompute is asked for: one record from REST, the command line and Airflow down to the job."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Literal, Self

import msgspec

from master_dataset.errors import RequestError

RecomputeMode = Literal["publish", "preview"]
_WAIT = "wait"


class RecomputeRequest(msgspec.Struct, frozen=True):
    """Empty means everything. A `partial` request keeps the published cut.

    `first`, `last` (`from`, `to` in JSON): UTC days of `happened_at`, both included. `stores`: only days on which one
    of them has events. `full`: every day, whether it was touched since the last publication or not. `wait`: at a cut
    that covers everything received before the call. `mode`: a preview publishes nothing.
    """

    views: tuple[str, ...] = ()
    first: date | None = msgspec.field(name="from", default=None)
    last: date | None = msgspec.field(name="to", default=None)
    stores: tuple[str, ...] = ()
    full: bool = False
    wait: bool = False
    mode: RecomputeMode = "publish"

    def __post_init__(self) -> None:
        """RequestError if the days are the wrong way round."""
        if self.first and self.last and self.first > self.last:
            raise RequestError(f"from `{self.first}` is after to `{self.last}`", do="swap them")

    @property
    def is_partial(self) -> bool:
        """Whether only chosen views, days or stores are recomputed."""
        return bool(self.views or self.first or self.last or self.stores)

    def to_json(self) -> str:
        """As the record keeps it and REST shows it; `from_json` gives an equal request."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return msgspec.json.decode(text, type=cls)

    def to_form(self) -> dict[str, Any]:
        """As the form of the Airflow DAG has it, which knows no `wait`."""
        form: dict[str, Any] = msgspec.to_builtins(self)
        del form[_WAIT]
        return form

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Self:
        """The request of a DAG run: of its form as far as it was filled in; of a DAG without one, everything."""
        known = {name: form[name] for name in cls.__struct_encode_fields__ if form.get(name)}
        return msgspec.convert(known, cls)

    def options(self) -> Iterator[str]:
        """The same for `galatea rebuild` and `galatea recompute plan`, whose arguments are the views.

        Values stand behind a `=`, so none is taken for an option.
        """
        if self.first:
            yield f"--from={self.first.isoformat()}"
        if self.last:
            yield f"--to={self.last.isoformat()}"
        yield from (f"--store={store}" for store in self.stores)
        if self.full:
            yield "--full"
        if self.wait:
            yield "--wait"
        if self.mode == "preview":
            yield "--dry-run"
