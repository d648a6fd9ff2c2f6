"""What the answer to a request rests on, for whoever keeps it."""

from typing import NamedTuple

from serving_layer.index.question import IndexAsk
from serving_layer.query.questions import CellsAsk, MetricAsk
from serving_layer.query.read_version import Moment


class RestsOn(NamedTuple):
    """`ask`: by which the moment of a later request is read. `moment`: that of this one."""

    ask: MetricAsk | IndexAsk | CellsAsk
    moment: Moment
