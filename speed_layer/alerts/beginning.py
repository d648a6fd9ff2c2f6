"""Where a relay may begin: at what is committed. What would leave out records in silence is a named stop instead."""

from collections.abc import Mapping

from master_dataset.errors import OperatorError
from speed_layer.alerts.committed import Committed, Log
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import Inlet, RecordsGone
from views.alerts.alert import CORRECTIONS, TOPIC


def first_positions(inlet: Inlet, snapshots: Snapshots, known: Committed) -> dict[str, int]:
    """Where to begin in topics without a position: of events that were there before the first start nothing is told.

    What a publication asks for is. OperatorError if a topic had a position once: Kafka has forgotten it.
    """
    missing = [topic for topic in inlet.topics if topic not in known.positions]
    if not missing:
        return {}
    if known.positions:
        forgotten = [topic for topic in missing if topic in {*known.read, *snapshots.topics}]
    else:
        forgotten = missing if snapshots.are_there or inlet.bounds(TOPIC)[1] > 0 else []
    if forgotten:
        named = ", ".join(f"`{topic}/{inlet.partition}`" for topic in forgotten)
        what = f"alerts have read {named} before, and nothing is committed any more of how far"
        raise OperatorError(what, do="say where to go on: see docs/how-to/alerts.md, When positions are gone")
    return {topic: inlet.bounds(topic)[topic != CORRECTIONS] for topic in missing}


def refuse_lost_log(inlet: Inlet, known: Committed, logs: Mapping[str, Log]) -> None:
    """OperatorError if a topic is not the one that was read to there, or cannot be. RecordsGone if it begins behind."""
    do = "put the broker's log back, or see docs/how-to/alerts.md, When records are gone"
    for topic, at in known.positions.items():
        place = f"`{topic}/{inlet.partition}`"
        if known.ids.get(topic, logs[topic].id) != logs[topic].id:
            raise OperatorError(f"{place} was made anew since alerts have read it to {at}: another log", do=do)
        first, end = inlet.bounds(topic)
        if end < at:
            raise OperatorError(f"alerts have read {place} to {at}, which ends at {end}: another log", do=do)
        if first > at:
            raise RecordsGone(topic, inlet.partition)
