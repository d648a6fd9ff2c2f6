"""What a source is for, in the words of the file that defines it."""

import sys
from typing import Any

from master_dataset.source import Source


def purpose(source: Source[Any]) -> str:
    """The words at the top of its file, on one line."""
    modules = [module for name, module in sys.modules.items() if name.startswith("master_dataset.sources.")]
    words = next((module.__doc__ or "" for module in modules if source in vars(module).values()), "")
    return " ".join(words.split())
