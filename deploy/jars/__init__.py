"""Jars: a committed lock, fetched once in parallel, verified, and never fetched again. Java itself resolves nothing."""

from deploy.jars.cache import PARTS, Jar, ensure_jars, jar_paths, locked_jars, missing_jars

__all__ = ["PARTS", "Jar", "ensure_jars", "jar_paths", "locked_jars", "missing_jars"]
