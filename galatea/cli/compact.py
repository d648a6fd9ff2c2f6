"""`galatea compact`: compaction of the master dataset."""

from dataclasses import asdict

from deploy.console import ProgressSteps, print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson


def compact(as_json: AsJson = False) -> None:
    """Merge small files of the master dataset and delete files replaced long ago. The archive can keep running."""
    from deploy.backup.mark import refuse_unfinished_restore
    from deploy.cassandra import CLOCK_FOR_DELETION, refuse_wrong_clock, session_of
    from master_dataset.cassandra_tables import leased
    from master_dataset.dead_letters.replay_history import REPLAYS
    from master_dataset.dead_letters.table import TABLES as DEAD_LETTERS
    from master_dataset.delta.compaction import Compaction
    from master_dataset.delta.tables import MasterTables
    from master_dataset.sources import registered_sources
    from master_dataset.storage import is_table

    settings = Settings()
    tables, session = MasterTables(settings.paths.master_uri), session_of(settings.cassandra.address)
    refuse_wrong_clock(session, CLOCK_FOR_DELETION)
    refuse_unfinished_restore(session)
    paths = [tables.path(name) for name in (*registered_sources(), *DEAD_LETTERS, REPLAYS)]
    with ProgressSteps("compact") as steps, leased(session, "compaction") as lease:
        compaction = Compaction(lease.renew, settings.batch.vacuum_days)
        done = [compaction.run(path, steps.step) for path in paths if is_table(path)]
    if as_json:
        print_json({"tables": [asdict(each) for each in done]})
        return
    columns = ("table", "files before", "after", "bytes before", "after", "removed")
    counts = [(each.files_before, each.files_after, each.bytes_before, each.bytes_after, each.removed) for each in done]
    print_table(columns, [(each.table, *map("{:,}".format, own)) for each, own in zip(done, counts, strict=True)])
    print_message(
        f"  replaced files are kept for {settings.batch.vacuum_days} days, then the next compaction deletes them"
    )
