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
            help="`kafka`, `cassandra` (local stack), `spark`, `s3` (object store) and `kafka-4_3` (homes "
            "formatted by Kafka 4.3). Default: those that this deployment needs."
        ),
    ] = None,
) -> None:
    """Fetch the jars that Java needs, and check them. They are cached in `GALATEA_CACHE_DIR`.

    For Spark, it also builds a class archive once, in about half a minute, so that Spark starts faster.
    """
    from deploy.class_archive import make_class_archive
    from deploy.jars import FORMER_KAFKA, OBJECT_STORE, PARTS, ensure_jars
    from deploy.java import java_home_for_spark
    from deploy.local.stack import jar_parts

    settings = Settings()
    wanted = parts or jar_parts(settings)
    known = (*PARTS, FORMER_KAFKA, OBJECT_STORE)
    for part in wanted:
        if part not in known:
            raise UnknownNameError("part", part, known)
    with ProgressSteps("jars") as steps:
        total = ensure_jars(settings, lambda done, all_: steps.step(done, all_, "checked"), wanted)
    if "spark" in wanted:
        java_home_for_spark(settings)  # prepared now, because the folder is read-only when an image runs
    print_message(f"  {total} jars checked in {settings.jars.cache_dir}")
    if "spark" in wanted:
        print_message("  archive of Spark's classes ...")
        problem = make_class_archive(settings)
        print_message(
            f"  archive of Spark's classes: {f'none, which only costs time: {problem}' if problem else 'ready'}"
        )
