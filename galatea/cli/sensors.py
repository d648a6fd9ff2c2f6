"""`galatea sensors`: the health of registered sensors, as the REST API of the running stack answers it."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, get_args

import msgspec
from typer import Option

from deploy.console import print_message, print_table, text_output
from deploy.settings import Settings
from galatea.cli.ask import ids_of, plain
from galatea.cli.common.options import AsJson
from galatea.cli.common.rest import KeyFile, rest_client
from master_dataset.errors import RequestError
from master_dataset.registry.time_zones import zone_named
from serving_layer.query.sensor_health import SILENT_AFTER
from serving_layer.responses.sensors import SensorState

if TYPE_CHECKING:
    from galatea.client.answers import Number, SensorHealth

COLUMNS = ("state", "store", "sensor", "source", "place", "last signal", "coverage", "drift", "notes")
PROBLEMS_FIRST = ("silent", "never", "gaps", "unknown", "ok")
WINDOW = timedelta(minutes=15)
STORES_PER_REQUEST = 100


def sensors(  # noqa: PLR0913 - one parameter per option
    *,
    store: Annotated[
        list[str] | None, Option("--store", help="Stores, separated by commas or repeated. Default: all.")
    ] = None,
    state: Annotated[
        list[str] | None, Option("--state", help="ok, gaps, silent, never or unknown; repeated: any of them.")
    ] = None,
    start: Annotated[
        str | None, Option("--from", help="Date, instant with offset, or relative; inclusive. Default: -6d.")
    ] = None,
    end: Annotated[str | None, Option("--to", help="In the same format; exclusive. Default: the end of today.")] = None,
    named_range: Annotated[
        str | None, Option("--range", help="today, last_7_days, week_to_date, ..., instead of --from and --to.")
    ] = None,
    hours: Annotated[str, Option("--hours", help="Time that counts for coverage: all or open.")] = "all",
    silent_after: Annotated[
        int, Option("--silent-after", min=15, max=1440, help="Open minutes without a signal until a sensor is silent.")
    ] = SILENT_AFTER,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List sensors, problems first: last signal, coverage and drift of the last seven days, or of a range."""
    for each in state or ():
        if each not in get_args(SensorState):
            raise RequestError(f"there is no state `{each}`", do=f"choose of {', '.join(get_args(SensorState))}")
    if hours not in ("all", "open"):
        raise RequestError(f"--hours cannot be `{hours}`", do="choose `all` or `open`")
    with rest_client(Settings(), key_file) as galatea:
        found = list(
            galatea.sensors(
                start=start,
                end=end,
                range=named_range,
                store=ids_of(store, "--store"),
                state=state or (),
                hours="open" if hours == "open" else "all",
                silent_after=silent_after,
                limit=STORES_PER_REQUEST,
            )
        )
    found.sort(key=lambda each: (PROBLEMS_FIRST.index(each.state), each.store, each.sensor, each.source))
    if as_json:
        body = msgspec.json.Encoder(decimal_format="number").encode({"sensors": plain(found)})
        text_output().write(msgspec.json.format(body).decode() + "\n")
    elif found:
        print_table(COLUMNS, list(map(_row, found)))
    else:
        print_message("No sensor to show: none is registered for these days, or none is in that state.")


def _row(sensor: "SensorHealth") -> tuple[str, ...]:
    return (
        sensor.state,
        sensor.store,
        sensor.sensor,
        sensor.source,
        sensor.place or "",
        _last_signal(sensor),
        _percent(sensor.coverage_percent),
        _percent(sensor.drift_percent, sign="+"),
        _notes(sensor),
    )


def _last_signal(sensor: "SensorHealth") -> str:
    """The window in the local time of the store."""
    if sensor.last_signal is None:
        return "none"
    start = sensor.last_signal.astimezone(zone_named(sensor.timezone))
    end = (sensor.last_signal + WINDOW).astimezone(zone_named(sensor.timezone))
    return f"{start:%Y-%m-%d %H:%M}-{end:%H:%M}"


def _percent(value: "Number | None", sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.1f} %"


def _notes(sensor: "SensorHealth") -> str:
    notes = {None: "nothing shows whether it is alive", "other_lines": "measured by all other door lines"}
    found = [notes[sensor.measured_by]] if sensor.measured_by in notes else []
    found += ["with the other sensors of its door line"] if sensor.shared else []
    found += [f"until {sensor.end}"] if sensor.end else []
    return ", ".join(found)
