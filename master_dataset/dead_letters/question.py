"""Which dead letters are asked about: by reason, source, time of receipt, and whether they were replayed."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from master_dataset.errors import RequestError, UnknownName
from master_dataset.parsing.dead_letter import Reason
from master_dataset.sources import source_named


@dataclass(frozen=True)
class LetterQuestion:
    """`since`: inclusive, `until`: exclusive; both of `received_at`. `replayed`: None asks for both kinds."""

    reason: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    replayed: bool | None = None

    def __post_init__(self) -> None:
        """UnknownName, RequestError."""
        if self.reason is not None and self.reason not in list(Reason):
            raise UnknownName("reason", self.reason, list(Reason))
        if self.source is not None:
            source_named(self.source)
        if self.since is not None and self.until is not None and self.since >= self.until:
            message = f"`from` is `{self.since:%FT%TZ}`, which is not before `to`: `{self.until:%FT%TZ}`."
            raise RequestError(message, do="Swap them.")


def received_bound(text: str | None) -> datetime | None:
    """An instant from a UTC day or an instant with an offset. RequestError for anything else."""
    if not text:
        return None
    try:
        if "T" not in text and " " not in text:
            return datetime.combine(date.fromisoformat(text), time(0), UTC)
        if (found := datetime.fromisoformat(text)).tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    do = "A UTC day such as 2026-11-21, or an instant such as 2026-11-21T09:00:00Z."
    raise RequestError(f"`{text}` is no time of receipt.", do=do)
