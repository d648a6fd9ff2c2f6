"""Ids of alerts that were told: what somebody asks for again is left out."""

from datetime import timedelta

_DAY_MS = 86_400_000


def known_for(retention: timedelta) -> timedelta:
    """For how long what was told has to be known, if topics keep records for so long.

    A publication asks for records about windows that began within the retention, less or more than a day, and a relay
    that was stopped may read that as late again; by its own rules a relay tells of the last hours alone.
    """
    return 2 * retention + timedelta(days=2)


class Known:
    """Lets go of what was told so long ago that nobody asks for it any more."""

    def __init__(self, kept: timedelta) -> None:
        """`kept`: for how long by the time of the log, rounded up to whole days."""
        self._days = -(-kept // timedelta(days=1))
        self._told: dict[int, set[str]] = {}

    def __contains__(self, alert_id: str) -> bool:
        """Whether it was told."""
        return any(alert_id in ids for ids in self._told.values())

    def __len__(self) -> int:
        """How many are remembered."""
        return sum(map(len, self._told.values()))

    def add(self, alert_id: str, at_ms: int) -> None:
        """It was told, at that time of the log or a little later."""
        day = at_ms // _DAY_MS
        if day not in self._told:
            newest = max((day, *self._told))
            self._told = {each: ids for each, ids in self._told.items() if each >= newest - self._days}
        self._told.setdefault(day, set()).add(alert_id)
