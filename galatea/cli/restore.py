"""`galatea restore`: a backup into an empty cluster."""

from dataclasses import replace
from getpass import getuser
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson

LEASE_SECONDS = 120
"""Rows that are written together take less, even on a slow cluster."""
_WITHOUT_KEY = "Restore although the key file is lost; then sign keys and rotate webhook secrets."


def restore(
    folder: Annotated[Path, Argument(help="The folder that `galatea backup` has printed.")],
    dry_run: Annotated[bool, Option("--dry-run", help="Check everything and show what would be done.")] = False,
    without_key: Annotated[bool, Option("--without-key", help=_WITHOUT_KEY)] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty Cassandra. Shows the plan first. If it is killed, run it again to continue."""
    from deploy.backup.restore import Restore
    from deploy.backup.rows import CassandraKeyspace
    from deploy.cassandra import session_of
    from deploy.clusters import KEYSPACE
    from deploy.migration import TableMigration
    from deploy.schema import newest
    from deploy.secrets_key import secrets_key_of
    from master_dataset.cassandra_tables import leased
    from master_dataset.errors import OperatorError
    from master_dataset.kafka.topics import Topics

    settings = Settings()
    if TableMigration(settings.cassandra.address).plan():
        message = f"the keyspace `{KEYSPACE}` does not have the tables of this release yet"
        raise OperatorError(message, do="galatea migrate, then: galatea restore")
    session = session_of(settings.cassandra.address)
    restore = Restore(
        folder.expanduser().absolute(),
        CassandraKeyspace(session),
        Topics(settings.kafka.connection),
        settings.paths.master_uri,
        settings.paths.checkpoint_uri,
        newest(),
        getuser(),
        secrets_key=secrets_key_of(settings),
        without_key=without_key,
    )
    with ProgressSteps("restore") as steps:
        plan = restore.plan(steps.step)
        changes = list(plan.shown())
        for system, what in changes:
            print_message(f"  {system:<10} {what}")
        if not dry_run:
            with leased(session, "restoring", LEASE_SECONDS) as lease:
                replace(restore, renew=lease.renew).run(plan, steps.step)
    if as_json:
        shown = [{"system": system, "what": what} for system, what in changes]
        print_json({"dry_run": dry_run, "publication": plan.publication, "changes": shown})
    elif dry_run:
        print_message("  nothing was changed")
    else:
        since = f"{plan.manifest.created_at:%F %T} UTC"
        print_message(f"  done. Before you start the stack, repeat what was changed since {since}: stores with")
        print_message(
            "  `galatea stores load --restore`, then products, targets, rules and webhooks. Keys that were revoked"
        )
        print_message("  since then are valid again: revoke them. `logs/audit.jsonl` of the old home lists all of it")
        print_message(
            "Next: galatea down    galatea up --detach    galatea rebuild --full    galatea verify --sample 3"
        )
