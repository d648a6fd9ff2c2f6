"""Which pages there are."""

from collections.abc import Mapping

from galatea.cli.reference import command, errors, metrics, rest, settings, sources, views
from galatea.cli.reference.page import Page


def pages() -> Mapping[str, Page]:
    """Name of the file to page. Nothing is read but the code: no setting, no network, no store."""
    writers = (views, metrics, sources, settings, errors, command, rest)
    return {writer.__name__.rpartition(".")[2]: writer.page() for writer in writers}
