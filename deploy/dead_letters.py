"""Dead letters of a deployment, wired from settings."""

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from master_dataset.dead_letters.carrier import Carrier
from master_dataset.dead_letters.desk import Desk
from master_dataset.dead_letters.kept_events import KeptEvents
from master_dataset.dead_letters.replay_table import ReplayTable
from master_dataset.dead_letters.replaying import Replaying
from master_dataset.dead_letters.table import LetterTable

if TYPE_CHECKING:
    from deploy.settings import Settings


def desk_of(settings: "Settings") -> Desk:
    """What is kept."""
    replays = ReplayTable(settings.master_uri)
    return Desk(LetterTable(settings.master_uri, replays), replays, KeptEvents(settings.master_uri))


def replaying_of(settings: "Settings") -> Replaying:
    """The way back to the topics."""
    replays = ReplayTable(settings.master_uri)
    letters, events = LetterTable(settings.master_uri, replays), KeptEvents(settings.master_uri)
    return Replaying(letters, replays, events, Carrier(settings.kafka_bootstrap), partial(datetime.now, UTC))
