"""The questions. One view, one file: a file dropped into this folder is registered, computed, served and documented."""

from views.registry import registered_views, view_named

__all__ = ["registered_views", "view_named"]
