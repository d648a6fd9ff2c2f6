"""Jars: a committed lock, fetched once in parallel, verified, and never fetched again. Java itself resolves nothing."""

from deploy.jars.cache import (
    FORMER_KAFKA,
    KAFKA,
    OBJECT_STORE,
    PARTS,
    Jar,
    ensure_jars,
    jar_paths,
    locked_jars,
    missing_jars,
    spark_parts,
)

__all__ = [
    "FORMER_KAFKA",
    "KAFKA",
    "OBJECT_STORE",
    "PARTS",
    "Jar",
    "ensure_jars",
    "jar_paths",
    "locked_jars",
    "missing_jars",
    "spark_parts",
]
