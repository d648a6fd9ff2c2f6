"""The page of the settings: every variable, its default and its unit."""

from typing import Any

from pydantic.fields import FieldInfo

from deploy.reference.page import Page, code
from deploy.settings import Settings

MADE = {"cache_dir": "`$XDG_CACHE_HOME/galatea`, else `~/.cache/galatea`", "spark_conf": "`{}`"}
"""Defaults that are made anew, and may depend on who asks."""


def page() -> Page:
    """One row per field."""
    written = Page(
        "Settings",
        "Read from the environment, by every command and every component alike. A value that cannot be is refused "
        "before anything starts, with exit code 2.",
    )
    written.table(
        ("variable", "default", "bounds", "what it says"),
        [
            (code(f"GALATEA_{name.upper()}"), _default(name, field), _bounds(field), field.description or "")
            for name, field in Settings.model_fields.items()
        ],
    )
    return written


def _default(name: str, field: FieldInfo) -> str:
    return MADE[name] if field.default_factory is not None else code(field.default) or "empty"


def _bounds(field: FieldInfo) -> str:
    found: dict[str, Any] = {}
    for rule in field.metadata:
        found |= {sign: getattr(rule, sign) for sign in ("ge", "gt", "le", "lt") if hasattr(rule, sign)}
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return ", ".join(f"{words[sign]} {value}" for sign, value in found.items())
