"""`alerts.yaml`: the rules of a tenant as a file says them. What a rule may say is known where rules are read."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from master_dataset.errors import BadFile

MOST_BYTES = 4 * 1024 * 1024
MOST_RULES = 10_000
KNOWN = ("tenant", "rules")


class RulesFile(NamedTuple):
    """`tenant`: of those that name none; None: the file does not say. `rules`: as they are written, all text."""

    tenant: str | None
    rules: list[dict[str, Any]]


def load(file: Path) -> RulesFile:
    """Read an `alerts.yaml`. BadFile."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadFile(
                f"`{file}` is larger than {MOST_BYTES:,} bytes.", do="Split it, and apply it without --prune."
            )
        return read(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(f"`{file}` cannot be read: {error.strerror}.", do="Name an alerts.yaml.") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"`{file}` is not UTF-8.", do="Save it as UTF-8.") from error


def read(text: str) -> RulesFile:
    """Read the text of an `alerts.yaml`: a list `rules`. BadFile."""
    try:
        # Every scalar stays text, also `on` and `off`: what it means is said by the field.
        document = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - the base loader makes str, list and dict only
    except (yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise BadFile(f"The file is no YAML: {said}.", do="Mend it and apply it again.") from error
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        raise BadFile("`rules` must be a list of rules.", do="Write `rules:`, and a rule on each `-` below.")
    if other := [name for name in document if name not in KNOWN]:
        raise BadFile(f"`{other[0]}` is no field of the file.", do=f"There is: {', '.join(KNOWN)}.")
    rules, tenant = document["rules"], document.get("tenant")
    if len(rules) > MOST_RULES:
        raise BadFile(f"`rules` holds more than {MOST_RULES:,} rules.", do="Split the file.")
    if tenant is not None and not (isinstance(tenant, str) and tenant):
        raise BadFile("`tenant` must be a name.", do="Write one, or leave it out.")
    if wrong := [number for number, rule in enumerate(rules) if not isinstance(rule, dict)]:
        raise BadFile(f"`rules[{wrong[0]}]` must be a rule.", do="Write `kind`, `id` and what belongs to the kind.")
    return RulesFile(tenant, rules)
