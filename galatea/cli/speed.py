"""`galatea speed`: the speed layer's generations."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson

if TYPE_CHECKING:
    from views.control.generation import Generations

app = typer.Typer(no_args_is_help=True, help="Replace the generation of the speed layer.")
POLL_SECONDS = 0.5


@app.callback()
def speed() -> None:
    """Keep `restart` a command of its own while it is the only one."""


@app.command()
def restart(
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the new generation is served.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a new generation. The old one is served, without updates, until the new one has caught up."""
    from deploy.cassandra import session_of
    from master_dataset.errors import SpeedUnavailableError
    from views.control.generation import Generations

    generations = Generations(session_of(Settings().cassandra.address))
    old = generations.greatest()
    if not old:
        raise SpeedUnavailableError("there is no generation of the speed layer to replace", do="galatea up --detach")
    generations.claims.replace(old)
    print_message(f"  generation {old} no longer writes; the speed layer starts a new one, see galatea doctor")
    shown = _wait(generations, old) if wait else generations.pointer().generation
    if as_json:
        print_json({"replaced": old, "generation": shown})
    elif wait:
        print_message(f"  generation {shown} is served now")


def _wait(generations: "Generations", old: int) -> int:
    with ProgressSteps("speed") as steps:
        while (shown := generations.pointer().generation) <= old:
            new = generations.find(generations.greatest())
            if new is not None and new.number > old:
                done, total = generations.progress(new, shown)
                steps.step(done, total, f"generation {new.number}")
            else:
                steps.step(0, 1, "no new generation yet; is the speed process running? See galatea status.")
            time.sleep(POLL_SECONDS)
    return shown
