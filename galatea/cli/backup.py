"""`galatea backup`: a backup of what cannot be computed again."""

from pathlib import Path
from typing import Annotated

from typer import Option

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson

_TO = "Folder of the backups (default: GALATEA_BACKUP_DIR)."
_WITHOUT = "Leave out offsets, because the topics or the master dataset are lost: see docs/how-to/disaster-recovery.md."


def backup(
    to: Annotated[Path | None, Option("--to", help=_TO, show_default=False)] = None,
    without_offsets: Annotated[bool, Option("--without-offsets", help=_WITHOUT)] = False,
    as_json: AsJson = False,
) -> None:
    """Back up what cannot be computed again, while the stack runs. The master dataset is referred to, not copied."""
    from importlib.metadata import version

    from deploy.backup.mark import refuse_unfinished_restore
    from deploy.backup.rows import CassandraKeyspace
    from deploy.backup.writer import BackupWriter
    from deploy.cassandra import session_of
    from deploy.clusters import KEYSPACE
    from deploy.migration import TableMigration
    from deploy.schema import newest
    from deploy.secrets_key import key_file, secrets_key_of
    from master_dataset.errors import OperatorError
    from master_dataset.kafka.topics import Topics
    from master_dataset.sources import registered_sources
    from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC

    settings = Settings()
    if TableMigration(settings.cassandra.address).plan():
        message = f"the tables of the keyspace `{KEYSPACE}` are of an older release than this command"
        raise OperatorError(message, do="galatea migrate, then: galatea backup")
    session = session_of(settings.cassandra.address)
    refuse_unfinished_restore(session)
    writer = BackupWriter(
        CassandraKeyspace(session),
        None if without_offsets else Topics(settings.kafka.connection),
        (*registered_sources(), ALERTS_TOPIC, CORRECTIONS_TOPIC),
        settings.paths.master_uri,
        version("galatea-platform"),
        newest(),
        secrets_key=secrets_key_of(settings).fingerprint,
    )
    with ProgressSteps("backup") as steps:
        folder, manifest = writer.write(Path(to or settings.paths.backup_dir).expanduser().absolute(), steps.step)
    held = sum(each.bytes for each in manifest.files)
    if as_json:
        tables = {name: each.rows for name, each in manifest.tables.items()}
        master = {name: each.version for name, each in manifest.master.items()}
        found = {"folder": folder, "bytes": held, "publication": manifest.publication, "tables": tables}
        print_json(found | {"master": master, "master_uri": settings.paths.master_uri})
        return
    print_message(f"  {manifest.rows:,} rows, {held:,} bytes, publication {manifest.publication}, in {folder}")
    print_message(f"  copy it off this machine, and after it the master dataset, {settings.paths.master_uri}")
    print_message(
        f"  keep the key file apart from both, {key_file(settings)}: without it no key and no webhook is valid"
    )
