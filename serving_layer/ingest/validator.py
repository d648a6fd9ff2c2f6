"""Is a record an event, and one that its sender may send? What the parser cannot say comes from the registry.

The parser is the archive's, so an event that is accepted here becomes no dead letter there; but for one that repeats an
identity with another content, which no single record shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from master_dataset.kafka.producer import Outgoing
from master_dataset.parsing.dead_letter import DeadLetter
from master_dataset.parsing.masking import hidden
from master_dataset.parsing.parse import parse
from master_dataset.registry.stores import Store
from master_dataset.registry.terms import DEFAULT_TERMS, Terms
from master_dataset.source import Source
from serving_layer.ingest.outcomes import Item, foreign


@dataclass(frozen=True)
class Judge:
    """Of one request. `tenant`: whose stores the sender may speak for; None: any store, registered or not.

    `received_us`: microseconds since 1970 by this process's clock. The broker's own stamp is a little later.
    """

    source: Source[Any]
    stores: Mapping[str, Store]
    tenant: str | None
    received_us: int

    def judged(self, record: bytes) -> Outgoing | Item:
        """What is to be sent, masked and keyed by store as `galatea ingest` does it; or why it is rejected."""
        parsed = parse(self.source, record, self._terms_of, received_us=self.received_us)
        if isinstance(parsed, DeadLetter):
            return Item.refused(parsed)
        if self.tenant is not None and not self._is_own(parsed.store):
            return foreign(f"/{self.source.store}")
        return Outgoing(parsed.store.encode(), hidden(self.source, record))

    def _is_own(self, store: str) -> bool:
        return store in self.stores and self.stores[store].tenant == self.tenant

    def _terms_of(self, store: str) -> Terms:
        return self.stores[store].terms if store in self.stores else DEFAULT_TERMS
