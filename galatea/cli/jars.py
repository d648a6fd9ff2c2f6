"""`galatea jars`: fetch the jars before they are needed, for an image or a machine without a network."""

from typing import Annotated

import typer

from deploy.console import ProgressSteps, print_message
from deploy.settings import Settings
from master_dataset.errors import UnknownNameError


def jars(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help="`kafka`, `cassandra` (local stack), `spark` and `s3` (object store); those needed if left out."
        ),
    ] = None,
) -> None:
    """Fetch the jars that Java needs, and check them. They are cached in `GALATEA_CACHE_DIR`."""
    from deploy.jars import OBJECT_STORE, PARTS, ensure_jars
    from deploy.java import java_home_for_spark

    wanted = parts or PARTS
    known = (*PARTS, OBJECT_STORE)
    for part in wanted:
        if part not in known:
            raise UnknownNameError("part", part, known)
    settings = Settings()
    with ProgressSteps("jars") as steps:
        total = ensure_jars(settings, lambda done, all_: steps.step(done, all_, "checked"), wanted)
    if "spark" in wanted:
        java_home_for_spark(settings)  # which has to write there too, and an image is read-only
    print_message(f"  {total} jars checked in {settings.jars.cache_dir}")
