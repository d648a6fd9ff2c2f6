"""`galatea migrate`: create or upgrade topics, tables and folders."""

from datetime import timedelta
from typing import Annotated

from typer import Option

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson

_NEW_KEY = "Use the key file of this home, because the deployment's is lost."


def migrate(
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be done; change nothing.")] = False,
    settle: Annotated[
        int, Option(min=0, metavar="SECONDS", help="How long every producer may take to notice added partitions.")
    ] = 630,
    leave_partitions: Annotated[
        bool, Option("--leave-partitions", help="Do not add partitions. For containers that migrate before they start.")
    ] = False,
    new_secrets_key: Annotated[bool, Option("--new-secrets-key", help=_NEW_KEY)] = False,
    as_json: AsJson = False,
) -> None:
    """Create or upgrade topics, tables and folders: of the local stack while it runs, or of your own clusters.

    Shows the plan first. Safe to repeat, also from several machines at once.
    """
    from deploy.local.home import changed_settings, record_settings
    from deploy.migration import Change, TableMigration, TopicMigration, missing_folders
    from deploy.partitions import closed_from

    settings = Settings.ignoring_record()
    topics = TopicMigration(settings, settings.kafka.connection)
    tables = TableMigration(settings.cassandra.address, settings.cassandra.replication)
    topic_changes, files, folders = topics.plan(), tables.plan(), missing_folders(settings)
    if leave_partitions:
        topic_changes = topics.without_growth(topic_changes)
    grows = any(each.grows_from for each in topic_changes)
    if not (leave_partitions or grows or files or any(each.is_new for each in topic_changes)):
        grows = closed_from(settings) > 0  # an interrupted `migrate` or another tool added partitions
    remembered = () if leave_partitions else changed_settings(settings)
    changes = [
        *(Change("home", f"remember {each}, and restart the stack") for each in remembered),
        *topics.shown(topic_changes),
        *tables.shown(files),
        *([Change("kafka", f"open the partitions after {settle} s, once producers know them")] if grows else []),
        *(Change("disk", f"create the folder `{folder}`") for folder in folders),
    ]
    for each in changes:
        print_message(f"  {each.system:<10} {each.what}")
    if not dry_run:
        topics.apply(topic_changes)
        tables.apply(settings, with_new_key=new_secrets_key)
        if grows or (not leave_partitions and closed_from(settings)):
            _grow(settings, topics.partitions, settle)
        for folder in folders:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if remembered:
            record_settings(settings)
    if as_json:
        print_json({"dry_run": dry_run, "changes": [each._asdict() for each in changes]})
    else:
        done = "nothing was changed" if dry_run else "done"
        print_message(f"  {done}" if changes else "  nothing to do")


def _grow(settings: Settings, partitions: int, settle: int) -> None:
    from deploy.partitions import grow

    def waiting(left: float) -> None:
        steps.step(int(settle - left) // 10 * 10, settle, "waiting until producers know the new ones")

    with ProgressSteps("partitions") as steps:
        grow(settings, partitions, timedelta(seconds=settle), waiting)
