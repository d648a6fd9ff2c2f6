"""What stands beside the points of an answer, and never in them. A kind of context is one module of this folder."""

from serving_layer.context.kinds import NAMES, asked_kinds, told_of

__all__ = ["NAMES", "asked_kinds", "told_of"]
