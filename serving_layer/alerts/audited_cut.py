"""Up to where alerts are compared with what is published: what was received before may be provisional no more."""

from datetime import datetime
from typing import Protocol

from serving_layer.store.readers import PublishedReader
from views.core.cut import BEGINNING


class AuditReader(Protocol):
    """Which publication was looked at."""

    async def alerts_looked_at(self) -> int:
        """The publication whose numbers alerts were compared with last; 0: none. StoreUnavailable."""


async def audited_cut(audits: AuditReader, published: PublishedReader) -> datetime:
    """The cut of the publication that alerts were compared with last, so one whose audit is put off does not count.

    Not beyond the cut of what is published: after a rollback that is the earlier one. `BEGINNING`: nothing was compared
    yet. It is asked for before alerts are, which may only be newer. StoreUnavailable.
    """
    audited = await published.entry(await audits.alerts_looked_at())
    pointer = await published.pointer()
    return BEGINNING if audited is None else min(audited.cut, pointer.cut)
