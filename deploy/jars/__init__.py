"""Jars: a committed lock, fetched once in parallel, verified, and never fetched again. Java itself resolves nothing."""

from deploy.jars.cache import ensure_jars, jar_paths, missing_jars
from deploy.jars.lock import Jar, locked_jars

__all__ = ["Jar", "ensure_jars", "jar_paths", "locked_jars", "missing_jars"]
