"""What each table of Cassandra is to a backup: kept, or computed again. Every table of the schema is in one place here.

truth       kept: what people and programs have entered, and nothing else holds
history     kept: what has happened, and cannot be found out again
computed    left out: `galatea rebuild --full` or the next start of the stack fills it again
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class KeptTable:
    """A table that a backup keeps.

    Attributes:
        name: Its name.
        written_at: A column whose write timestamp is part of the meaning of the row, and kept; empty if none.
        expires: A column whose remaining lifetime is kept; empty if rows do not expire.
        rows_at_once: How many rows are read or written together: fewer where rows are large.
    """

    name: str
    written_at: str = ""
    expires: str = ""
    rows_at_once: int = 1_000


@dataclass(frozen=True)
class Group:
    """Tables that belong together.

    Attributes:
        heads: Tables that say which rows of the others count. They are read before and after them; if they have changed
            in between, the group is read again.
        bodies: The others, in the order in which they are read.
    """

    heads: Sequence[KeptTable] = ()
    bodies: Sequence[KeptTable] = ()


PUBLICATIONS, RECOMPUTES, AUDITS = "publications", "recomputes", "alert_audits"
ARCHIVE_POSITIONS, ALERT_POSITIONS = "archive_positions", "alerts_kept"
ENDPOINTS, SKIPS = "webhook_endpoints", "webhook_skips"
KEYS, SECRETS_KEY = "api_keys", "secrets_key"
GROWTHS = KeptTable("partition_growths")
"""How many partitions the topics have. A backup has it as it was from its begin to its end."""

_REGISTERED = tuple(KeptTable(name) for name in ("registered_stores", "replaced_stores", "former_terms"))

TRUTH = (
    Group((KeptTable("registry_versions"),), (KeptTable("stores"),)),
    Group((KeptTable("store_sets"), KeptTable("registry_changes")), _REGISTERED),
    Group((KeptTable("product_masters"),), (KeptTable("product_blocks"),)),
    Group((KeptTable("target_sets"),), (KeptTable("target_blocks"),)),
    Group(
        (),
        (
            KeptTable(KEYS),
            KeptTable("alert_versions"),
            KeptTable("annotations"),
            KeptTable("saved_views"),
            KeptTable(ENDPOINTS),
            GROWTHS,
            KeptTable("floor_plans", rows_at_once=8),  # up to 2 MB each
            KeptTable(SKIPS, expires="asked_at"),
            KeptTable("seen_titles", written_at="title"),
        ),
    ),
)
HISTORY = (
    Group(
        (KeptTable(PUBLICATIONS), KeptTable("ledgers")),
        (KeptTable("corrections", rows_at_once=16), KeptTable(RECOMPUTES), KeptTable(AUDITS)),
    ),
    # Positions before the tables that they are about: what is read twice changes nothing, what is not read is lost.
    Group((), (KeptTable(ARCHIVE_POSITIONS, written_at="position"), KeptTable(ALERT_POSITIONS))),
    # Rows before the lists by which they are found.
    Group(
        (),
        (
            KeptTable("alert_records"),
            KeptTable("alerts_told"),
            KeptTable("alert_days"),
            KeptTable("alerts_open_by_hour", written_at="body"),
            KeptTable("alert_open_hours"),
            KeptTable("alerts_open_moved"),
        ),
    ),
)
GROUPS = (*TRUTH, *HISTORY)
"""Everything that is kept, in the order in which it is read. The master dataset follows."""

COMPUTED: Mapping[str, str] = {
    "batch_cells": "the next rebuild",
    "day_cells": "the next rebuild",
    "manifests": "the next rebuild",
    "run_days": "the next rebuild",
    "speed_cells": "the next generation of the speed layer",
    "speed_cells_by_store": "the next generation of the speed layer",
    "speed_positions": "the next generation of the speed layer",
    "speed_stores": "the next generation of the speed layer",
    "first_deliveries": "the next generation of the speed layer",
    "first_deliveries_by_bucket": "the next generation of the speed layer",
    "generations": "the next generation of the speed layer",
    "raw_pos_transactions": "the next generation of the speed layer, as far as the topic goes back",
    "receipt_blocks": "the next generation of the speed layer, as far as the topic goes back",
    "lag": "every reader, all the time",
    "page_sessions": "browsers, when they sign in again",
    "page_sessions_of_keys": "the same",
    "share_links": "people, who make links again: one that was revoked after the backup would open its page once more",
    "share_digests": "the same: a holder of the token of a revoked link still has it",
    "api_rates": "every api process, every second",
    "process_releases": "every process, all the time",
    "alarms": "the processes that raise them; the next publication settles them",
    "webhook_states": "the dispatcher, all the time",
    "running_recomputes": "the process that works on a recompute",
    "leases": "the processes that hold them",
    "secrets_key": "`galatea migrate`, from the key file, which is kept apart",
    "signed_alerts": "the alert processor, and the next publication: older records count as they are",
    "alerts_open": "nobody any more: a former form of `alerts_open_by_hour`",
}
"""Everything that is left out, and who fills it again."""


def kept_tables() -> Sequence[KeptTable]:
    """Return every table that is kept, in the order of reading."""
    return [table for group in GROUPS for table in (*group.heads, *group.bodies)]
