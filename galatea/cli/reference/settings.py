"""The page of the settings: every variable, its default and its unit."""

from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo

from deploy.limits import LimitSettings
from deploy.settings import Settings
from galatea.cli.reference.page import Page, code

MADE = {"cache_dir": "`$XDG_CACHE_HOME/galatea`, else `~/.cache/galatea`", "spark_conf": "`{}`"}
"""Defaults that are made anew, and may depend on who asks."""


def page() -> Page:
    """One row per field; what bounds the REST interface stands apart."""
    written = Page(
        "Settings",
        "Read from the environment, by every command and every component alike. A value that cannot be is refused "
        "before anything starts, with exit code 2.",
    )
    limits = LimitSettings.model_fields
    _table(written, {name: field for name, field in Settings.model_fields.items() if name not in limits})
    written.heading("Limits of the REST interface")
    written.paragraph(LimitSettings.__doc__ or "")
    _table(written, limits)
    return written


def _table(written: Page, settings: Mapping[str, FieldInfo]) -> None:
    written.table(
        ("variable", "default", "bounds", "what it says"),
        [
            (code(f"GALATEA_{name.upper()}"), _default(name, field), _bounds(field), field.description or "")
            for name, field in settings.items()
        ],
    )


def _default(name: str, field: FieldInfo) -> str:
    return MADE[name] if field.default_factory is not None else code(field.default) or "empty"


def _bounds(field: FieldInfo) -> str:
    found: dict[str, Any] = {}
    for rule in field.metadata:
        found |= {sign: getattr(rule, sign) for sign in ("ge", "gt", "le", "lt") if hasattr(rule, sign)}
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return ", ".join(f"{words[sign]} {value}" for sign, value in found.items())
