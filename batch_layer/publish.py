"""The one switch to a new publication, and what is done when its outcome is unknown (R11)."""

import structlog
from cassandra import OperationTimedOut, WriteTimeout

from master_dataset.errors import PublicationMoved
from views.core.pointer_row import PointerRow, Publication
from views.core.publication import Pointer

log = structlog.get_logger()


def publish(pointer: PointerRow, base: Pointer, new: Publication) -> None:
    """Switch readers to `new`. PublicationMoved if somebody else has published since `base` was read.

    An unknown outcome is settled by the history: if the row is ours, so is the switch.
    """
    try:
        switched = pointer.publish(base, new)
    except (OperationTimedOut, WriteTimeout):
        log.warning("rebuild.outcome_unknown", publication=new.number)
        found = pointer.publication(new.number)
        switched = found is not None and found.manifest == new.manifest
    if not switched:
        message = f"somebody else published after publication {base.publication}, on which this run was based"
        raise PublicationMoved(message, do="galatea rebuild")
