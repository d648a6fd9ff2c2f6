"""The services of what people keep, as the app is built from them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from serving_layer.saved.annotations import Annotations
from serving_layer.saved.shares import ShareLinks
from serving_layer.saved.views import SavedViews


@dataclass(frozen=True)
class SavedService:
    """Annotations, saved views and share links. `now`: when something is made."""

    annotations: Annotations
    views: SavedViews
    shares: ShareLinks
    now: Callable[[], datetime]
