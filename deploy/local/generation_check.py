"""Which generation of the speed layer is read, and what another one still has to do before it is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deploy.cassandra import session_of
from deploy.definitions import definitions
from deploy.local.finding import Finding
from master_dataset.errors import StoreUnavailable
from speed_layer.generation import Generation, Generations

if TYPE_CHECKING:
    from deploy.settings import Settings


def generation_finding(settings: "Settings") -> Finding:
    """One finding about a running stack."""
    try:
        generations = Generations(session_of(settings.cassandra_address))
    except StoreUnavailable as error:
        return Finding("speed", ok=False, found=error.message, do="galatea status, then logs/cassandra.log")
    served = generations.pointer().generation
    newest = generations.find(generations.greatest())
    if newest is None:
        return Finding("speed", ok=False, found="no generation was begun yet", do="galatea status, then logs/speed.log")
    if newest.number > served:
        return _coming(generations, newest, served, definitions(settings))
    if generations.claims.is_replaced(served):
        do = "galatea status: the speed process has to run"
        return Finding("speed", ok=False, found=f"generation {served} was replaced, no other was begun", do=do)
    return Finding("speed", ok=True, found=f"generation {served} is read")


def _coming(generations: Generations, newest: Generation, served: int, current: Mapping[str, str]) -> Finding:
    done, total = generations.progress(newest, served)
    read = f"generation {served} is read" if served else "none is read yet"
    found = f"{read}; {newest.number} takes over after at most {total - done:,} more records"
    pointer = generations.pointer()
    if pointer.publication and dict(pointer.definitions) != current:
        return Finding("speed", ok=False, found=f"{read}; {newest.number} has new definitions", do="galatea rebuild")
    return Finding("speed", ok=True, found=found)
