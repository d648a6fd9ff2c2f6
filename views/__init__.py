"""The questions. One view, one file: a file dropped into this folder is registered, computed, served and documented."""

from views.registry import current_definitions, registered_views, view_named

__all__ = ["current_definitions", "registered_views", "view_named"]
