"""What rows of both layers have to agree on, as this deployment has it now."""

from typing import TYPE_CHECKING

from views.registry import current_definitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.settings import Settings


def definitions(settings: "Settings") -> "Mapping[str, str]":
    """View to hash, and what is the same for all of them."""
    return current_definitions(settings.epoch_seconds, settings.visit_gap_seconds)
