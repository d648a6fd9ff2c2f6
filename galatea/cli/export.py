"""`galatea export`: corrected views as Delta tables."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

from typer import Argument

from deploy.console import ProgressSteps, print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson


def export(
    views: Annotated[list[str] | None, Argument(help="Views (default: all).", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Update the Delta tables of corrected views to the current publication. Only changed days are written."""
    from batch_layer.maintenance.export import corrected_schema, export_published
    from deploy.backup.mark import refuse_unfinished_restore
    from deploy.cassandra import session_of
    from deploy.telemetry.datasets import exported_datasets
    from deploy.telemetry.jobs import lineage_of_job
    from views import view_named

    settings = Settings()
    session = session_of(settings.cassandra.address)
    refuse_unfinished_restore(session)
    with ProgressSteps("export") as steps, lineage_of_job(settings, "export") as lineage:
        publication, done = export_published(
            session,
            settings.paths.corrected_uri,
            views or [],
            definitions=settings.definitions,
            keeps=timedelta(days=settings.batch.vacuum_days),
            step=steps.step,
        )
        schemas = {each.view: corrected_schema(view_named(each.view)) for each in done}
        lineage.describe = lambda: exported_datasets(settings, publication, done, schemas)
    if as_json:
        tables = [asdict(each) for each in done]
        print_json({"publication": publication, "uri": settings.paths.corrected_uri, "tables": tables})
        return
    counts = [(each.view, *map("{:,}".format, (each.days, each.gone, each.cells))) for each in done]
    print_table(("view", "days written", "days gone", "cells written"), counts)
    print_message(
        f"  publication {publication}, in {settings.paths.corrected_uri}; "
        f"replaced files are kept for {settings.batch.vacuum_days} days"
    )
