"""`galatea gc`: garbage collection of cells and publications."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from typer import Option

from deploy.console import ProgressSteps, print_fields, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson


def gc(
    keep: Annotated[int | None, Option("--keep", min=1, help="Number of newest publications to keep complete.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be deleted; change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete cells that no kept publication needs. The history stays; a deleted publication cannot be restored."""
    from batch_layer.maintenance.gc import GarbageCollector
    from batch_layer.maintenance.reachable import Retention
    from deploy.backup.mark import refuse_unfinished_restore
    from deploy.cassandra import CLOCK_FOR_DELETION, refuse_wrong_clock, session_of
    from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
    from master_dataset.errors import CassandraUnavailableError

    settings = Settings()
    kept = Retention(keep or settings.batch.keep_publications, timedelta(days=settings.batch.keep_days))
    try:
        with ProgressSteps("gc") as steps:
            session = session_of(settings.cassandra.address)
            refuse_wrong_clock(session, CLOCK_FOR_DELETION)
            refuse_unfinished_restore(session)
            garbage_collector = GarbageCollector(session, kept, datetime.now(UTC))
            survey = garbage_collector.survey(steps.step)
            verb = "would" if dry_run else "will"
            print_message(f"  {len(survey.let_go)} publications, {survey.blocks:,} blocks {verb} be deleted")
            if not dry_run:
                garbage_collector.run(survey, steps.step)
    except CASSANDRA_UNAVAILABLE as error:
        message = "Cassandra did not respond in time; what has been deleted stays deleted"
        raise CassandraUnavailableError(message, do="galatea status, then: galatea gc") from error
    found = survey.shown() | {"dry_run": dry_run}
    if as_json:
        print_json(found)
    else:
        print_fields(found)
