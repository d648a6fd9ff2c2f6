"""Writes what is published to the tables of corrected views, one writer at a time."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from batch_layer.maintenance.export import CorrectedTable, Exported
from batch_layer.run import read_manifest
from deploy.cassandra import session_of
from deploy.definitions import definitions
from master_dataset.errors import DefinitionNotCovered, NothingPublished
from master_dataset.lease import leased
from views import registered_views, view_named
from views.control.pointer_row import PointerRow

if TYPE_CHECKING:
    from deploy.settings import Settings

Step = Callable[[int, int, str], None]


def exported(settings: "Settings", names: Sequence[str], step: Step) -> tuple[int, list[Exported]]:
    """Which publication the tables of these views, or of all, say now; and what was written.

    UnknownName; NothingPublished; DefinitionNotCovered while a definition differs from the published one.
    """
    views = [view_named(name) for name in names] or list(registered_views())
    session = session_of(settings.cassandra_address)
    done = []
    with leased(session, "export") as lease:
        pointer = PointerRow(session).read()
        if not pointer.publication:
            raise NothingPublished("nothing is published yet", do="galatea rebuild, then: galatea export")
        current, published = definitions(settings), read_manifest(session, pointer.manifest)
        for place, view in enumerate(views):
            if not view.is_defined_alike(current, pointer.definitions):
                message = f"the definition of `{view.name}` differs from the published one"
                raise DefinitionNotCovered(message, do="galatea rebuild, then: galatea export")
            step(place, len(views), view.name)
            lease.renew()
            runs = {day: run for (name, day), run in published.items() if name == view.name}
            table = CorrectedTable(session, settings.corrected_uri, view)
            done.append(table.bring_to(runs, pointer.publication, timedelta(days=settings.vacuum_days)))
        step(len(views), len(views), "written")
    return pointer.publication, done
