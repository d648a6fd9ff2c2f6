"""Where a relay may begin: at what is committed. What would leave out records in silence is a named stop instead."""

from collections.abc import Mapping

from master_dataset.errors import OperatorError
from speed_layer.alerts.inlet import Inlet
from speed_layer.alerts.snapshots import Snapshots
from views.alerts.alert import CORRECTIONS, TOPIC


def first_positions(inlet: Inlet, snapshots: Snapshots, committed: Mapping[str, int]) -> dict[str, int]:
    """Where to begin in topics without a position: of events that were there before the first start nothing is told.

    What a publication asks for is. OperatorError if a topic had a position once: Kafka has forgotten it.
    """
    missing = [topic for topic in inlet.topics if topic not in committed]
    if not missing:
        return {}
    if committed:
        forgotten = [topic for topic in missing if topic in snapshots.topics]
    else:
        forgotten = missing if snapshots.are_there or inlet.bounds(TOPIC)[1] > 0 else []
    if forgotten:
        named = ", ".join(f"`{topic}/{inlet.partition}`" for topic in forgotten)
        what = f"alerts have read {named} before, and nothing is committed any more of how far"
        raise OperatorError(what, do="say where to go on: see docs/alerts.md, When positions are gone")
    return {topic: inlet.bounds(topic)[topic != CORRECTIONS] for topic in missing}


def refuse_other_log(inlet: Inlet, committed: Mapping[str, int]) -> None:
    """OperatorError if a topic cannot be the one that was read to there."""
    for topic, at in committed.items():
        if (end := inlet.bounds(topic)[1]) < at:
            what = f"alerts have read `{topic}/{inlet.partition}` to {at}, which ends at {end}: another log"
            raise OperatorError(what, do="put the broker's log back, or see docs/alerts.md, When records are gone")
