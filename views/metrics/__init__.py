"""The numbers people ask for. One file, one subject; a file dropped into this folder is registered."""

from views.metrics.registry import registered_metrics

__all__ = ["registered_metrics"]
