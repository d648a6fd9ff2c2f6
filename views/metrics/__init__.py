"""The metrics, one file per subject: a file in this folder is registered."""

from views.metrics.registry import registered_metrics

__all__ = ["registered_metrics"]
