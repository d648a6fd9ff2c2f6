"""The views, one file each: a file in this folder is registered, computed, served and documented."""

from views.registry import current_definitions, registered_views, view_named

__all__ = ["current_definitions", "registered_views", "view_named"]
