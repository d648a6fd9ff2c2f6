"""`galatea verify`: the merged answer against a full recompute."""

import os
import sys
from typing import Annotated

from typer import Option

from deploy.cli.output import Steps, answer, say
from deploy.settings import Settings


def verify(as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """Close an epoch in both layers and compare every merged cell with a full recompute. Exit 1 on any difference."""
    from deploy.verification import Verification

    with Steps("verify") as steps:
        verdict = Verification(Settings()).run(steps.step)
    if as_json:
        counted = {"cells": verdict.cells, "differing": verdict.differing}
        answer(
            {
                **counted,
                "waiting_for_batch": verdict.waiting_for_batch,
                "epoch": verdict.epoch,
                "examples": verdict.examples,
            }
        )
    else:
        for example in verdict.examples:
            say(f"  {example}")
        say(
            f"  {verdict.cells:,} cells compared at {verdict.epoch:%Y-%m-%d %H:%M:%S} UTC, "
            f"{verdict.differing:,} differing, {verdict.waiting_for_batch:,} events wait for the next publication"
        )
    sys.stdout.flush()
    os._exit(1 if verdict.differing else 0)  # Spark's Java ends with this process
