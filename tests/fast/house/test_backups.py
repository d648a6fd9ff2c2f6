"""Every table of the schema is kept by backups or computed again: a new one has to say which."""

import re

from deploy.backup.tables import COMPUTED, kept_tables
from tests.fast.house.tree import ROOT, text

_CREATED = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")


def test_every_table_of_the_schema_is_in_exactly_one_class() -> None:
    files = sorted((ROOT / "deploy" / "schema").glob("*.cql"))
    created = {name for file in files for name in _CREATED.findall(text(file))}
    kept = [table.name for table in kept_tables()]

    assert sorted([*kept, *COMPUTED]) == sorted(created)


def test_a_backup_has_no_share_links_because_a_restore_would_open_revoked_ones() -> None:
    assert {"share_links", "share_digests"} <= COMPUTED.keys()
