"""`galatea demo`: the whole stack on real receipts."""

import os
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from typer import Option

from deploy.console import print_error, print_message, stdout
from deploy.local.records import State
from master_dataset.errors import GalateaError

if TYPE_CHECKING:
    from deploy.settings import Settings
    from lab.demo.verdict import DemoResult

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
INTERRUPTED = 130
_ONCE = "Stop at the end, and exit 0 only if every number is right."


def demo(once: Annotated[bool, Option("--once", help=_ONCE)] = False) -> None:
    """Load real receipts, play a trading day on a new local stack, and check every cell independently."""
    from deploy.airflow.component import is_installed
    from deploy.local.stack import Stack
    from galatea.cli.main import configure_log
    from lab.demo.home import remove, settings_of_the_demo
    from lab.demo.journey import ORIGIN
    from lab.demo.scenario import HistoryLoader, Scenario

    began = time.monotonic()
    for number in SIGNALS:
        signal.signal(number, _leave)
    settings = settings_of_the_demo(once=once)
    configure_log(always_to_file=True)
    print_message(f"  {ORIGIN}")
    _fetch_jars(settings)
    opening = HistoryLoader(settings)

    def on_change(name: str, state: str, seconds: float) -> None:
        _print_state(name, state, seconds)
        opening.on_state(name, state, seconds)

    with Stack(settings, on_change=on_change, airflow=True) as stack:
        scenario = Scenario(settings, *opening.result(), has_airflow=is_installed(), began=began)
        found = scenario.run()
        _conclude(found, settings, time.monotonic() - began)
        if not once:
            _print_next_steps(settings, scenario.featured)
            with scenario.keep_arriving():
                try:
                    print_message(f"  {scenario.load_year()}; receipts keep arriving until Ctrl-C")
                except GalateaError as error:  # the demo goes on without the year
                    print_error(error)
                stack.wait()
    if once and found.is_right:
        remove(settings.home)
    sys.stdout.flush()
    os._exit(0 if found.is_right else 1)  # Spark's Java ends with this process


def _fetch_jars(settings: "Settings") -> None:
    from deploy.jars import ensure_jars
    from deploy.local.stack import jar_parts
    from lab.demo.progress import Stage

    with Stage("jars") as stage:
        ensure_jars(settings, lambda done, total: stage.step(done, total, "checked"), jar_parts(settings))


def _conclude(found: "DemoResult", settings: "Settings", seconds: float) -> None:
    parts = found.deliveries
    stdout.print(f"{found.cells:,} cells compared, {found.differing:,} differing")
    products = found.products
    stdout.print(f"{products.compared:,} top products of departments compared, {products.differing:,} differing")
    stdout.print(
        f"{found.sent:,} records sent = {parts.events:,} events + {parts.duplicates:,} duplicates + "
        f"{found.dead_letters + parts.conflicts:,} dead letters ({parts.conflicts:,} conflicting duplicates)"
        f"{'' if found.is_conserved else '   DOES NOT ADD UP'}"
    )
    stdout.print(
        f"{found.waiting:,} waiting for the next publication: {parts.old:,} old events that neither side counts, "
        f"and duplicates of old ones{'' if found.is_waiting_covered else '   DOES NOT FIT'}"
    )
    for example in found.examples:
        stdout.print(f"  {example}", markup=False)
    if not found.is_right:
        print_message(f"  kept for inspection: {settings.home}")
    print_message(f"  {seconds:.0f} s in all")


def _print_next_steps(settings: "Settings", store: str) -> None:
    from deploy.airflow.component import is_installed

    url = settings.api_url
    print_message(f"\nNext:  the chain      {url}/")
    print_message(f"       one store      {url}/stores/{store}")
    print_message(f"       over REST      curl '{url}/v1/metrics/net_sales?store={store}&range=last_28_days&grain=day'")
    print_message("       in a terminal  galatea status    galatea verify    galatea down")
    if is_installed():
        who = f"as {settings.airflow.user}, password in {settings.airflow.password_file}"
        print_message(f"       Airflow        {settings.airflow.url} {who}")
    print_message("\nMeanwhile the rest of the year is loaded. Everything keeps running until Ctrl-C.")


def _print_state(name: str, state: str, seconds: float) -> None:
    if state in (State.RUNNING, State.FAILED, State.BACKING_OFF):
        print_message(f"  {name:<10} {state} {seconds:.1f} s")


def _leave(_number: int, _frame: FrameType | None) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the following stop must not be interrupted
    raise SystemExit(INTERRUPTED)
