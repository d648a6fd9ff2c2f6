"""Whether this process is to end at a crash point."""

import os


def arm_if_asked() -> None:
    """At the start of every process of ours. Costs nothing unless `GALATEA_CRASH_AT` is set."""
    if os.environ.get("GALATEA_CRASH_AT"):
        from deploy.settings import Settings  # noqa: PLC0415 - it takes a while, and not every process needs it
        from master_dataset.failpoints import arm  # noqa: PLC0415 - likewise

        settings = Settings()
        arm(settings.crash_at, settings.crash_folder)
