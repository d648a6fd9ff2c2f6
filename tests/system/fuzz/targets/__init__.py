"""One module for each border of the platform."""

from collections.abc import Mapping
from importlib import import_module

from tests.system.fuzz.target import Target

TARGETS: Mapping[str, str] = {
    "parser": "records.Records",
    "sql": "sql.Sql",
    "sql_wire": "sql_wire.SqlWire",
    "query_strings": "query_strings.QueryStrings",
    "yaml": "files.YamlFiles",
    "yaml_aliases": "files.AliasFiles",
    "csv": "files.CsvFiles",
    "kafka_headers": "records.KafkaHeaders",
    "webhook_answers": "webhook_answers.WebhookAnswers",
}
"""By name the module and the class, in the order in which they are fuzzed."""


def target_named(name: str) -> Target:
    """A target of `TARGETS`. Only its own module is imported: a database is not needed for files."""
    module, _, kind = TARGETS[name].partition(".")
    found: type[Target] = getattr(import_module(f"{__name__}.{module}"), kind)
    return found()
