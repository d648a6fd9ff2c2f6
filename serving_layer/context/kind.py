"""What a kind of context has to give."""

from collections.abc import Sequence
from typing import Protocol

from serving_layer.context.reading import Reading
from serving_layer.query.resolved_query import Asked
from serving_layer.responses.metrics import Holidays, Weather


class Kind(Protocol):
    """One kind, by the name that `context=` asks for."""

    @property
    def name(self) -> str:
        """As it is asked for."""

    @property
    def views(self) -> Sequence[str]:
        """The views it reads; without them it is not available."""

    async def told(self, asked: Asked, reading: Reading) -> Holidays | Weather:
        """What the answer says under that name: `rows`, and where they come from."""
