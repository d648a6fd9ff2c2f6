"""The one switch to a new publication, and what is done when its outcome is unknown (R11)."""

from dataclasses import replace

import structlog
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage

from master_dataset.errors import PublicationMoved
from views.control.pointer_row import PointerRow, Publication
from views.control.publication import Pointer

log = structlog.get_logger()

_UNKNOWN = (DriverException, NoHostAvailable, ErrorMessage)
"""What the driver raises for a request that may have been done."""


def publish(pointer: PointerRow, base: Pointer, new: Publication) -> None:
    """Switch readers to `new`. PublicationMoved if somebody else has published since `base` was read.

    A generation of the same definitions that took over meanwhile is kept: it began at the base's cut or before.
    The history decides after a failure, or a second try that did not find what the first had changed: if its row is
    ours, so is the switch. Raises what the driver raised if nothing was published at all.
    """
    now = pointer.read()
    if now.publication == base.publication and dict(now.definitions) == dict(new.definitions):
        base, new = replace(base, generation=now.generation), replace(new, generation=now.generation)
    failure = None
    try:
        if pointer.publish(base, new):
            return
    except _UNKNOWN as error:
        log.warning("rebuild.outcome_unknown", publication=new.number)
        failure = error
    found = pointer.publication(new.number)
    if found is None and failure is not None:
        raise failure
    if found is None or found.manifest != new.manifest:
        message = f"somebody else published after publication {base.publication}, on which this run was based"
        raise PublicationMoved(message, do="galatea rebuild")
