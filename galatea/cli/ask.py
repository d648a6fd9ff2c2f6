"""`galatea ask`: the values of metrics, as the REST API of the running stack answers them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from typer import Argument, Option

from deploy.console import print_message, print_table, text_output
from deploy.settings import Settings
from galatea.cli.common.rest import KeyFile, rest_client
from master_dataset.errors import RequestError

if TYPE_CHECKING:
    from galatea.client.answers import Answer, Answers
    from galatea.client.dataframes import Row
    from galatea.client.whole_answers import MetricOptions

BESIDE_VALUE = ("metric", "unit", "timezone", "grain", "final", "start", "date", "local", "currency", "flags", "other")
"""Columns of a row that a table in the terminal shows in its own way, or not at all."""
PROVENANCE = frozenset({"publication", "cut", "speed_as_of", "waiting_for_batch", "layers", "missing"})


def ask(  # noqa: PLR0913 - one parameter per option
    metrics: Annotated[str, Argument(help="One or more metrics, separated by commas; `galatea metrics` lists them.")],
    *,
    start: Annotated[
        str | None, Option("--from", help="Date, instant with offset, or relative (-7d); inclusive.")
    ] = None,
    end: Annotated[str | None, Option("--to", help="In the same format; exclusive. Default: the end of today.")] = None,
    named_range: Annotated[
        str | None, Option("--range", help="today, last_7_days, month_to_date, ..., instead of --from and --to.")
    ] = None,
    grain: Annotated[
        str | None, Option("--grain", help="15m, hour, day, week, month, year, weekday, hour_of_week or total.")
    ] = None,
    by: Annotated[
        list[str] | None, Option("--by", help="total, group:NAME, or dimensions such as sku, separated by commas.")
    ] = None,
    store: Annotated[
        list[str] | None, Option("--store", help="Stores, separated by commas or repeated. Default: all.")
    ] = None,
    sort: Annotated[str | None, Option("--sort", help="value, -value, change, -change or name.")] = None,
    top: Annotated[int | None, Option("--top", min=1, help="Keep this many series; the others are added up.")] = None,
    share: Annotated[bool, Option("--share", help="Show each value's percentage of the total.")] = False,
    compare: Annotated[str | None, Option("--compare", help="previous_week, previous_year, ...")] = None,
    category: Annotated[
        list[str] | None, Option("--category", help="Only products of this category, such as Food/Dairy.")
    ] = None,
    brand: Annotated[list[str] | None, Option("--brand", help="Only products of this brand.")] = None,
    sku: Annotated[list[str] | None, Option("--sku", help="Only these SKUs, separated by commas or repeated.")] = None,
    attributes: Annotated[
        str | None, Option("--attributes", help="as_then (default) or current groups and products.")
    ] = None,
    hours: Annotated[str | None, Option("--hours", help="all (default) or open.")] = None,
    timezone: Annotated[str | None, Option("--timezone", help="Default: each store's own.")] = None,
    as_of: Annotated[int | None, Option("--as-of", min=1, help="Number of a publication. Default: live.")] = None,
    at_least: Annotated[
        str | None, Option("--at-least", help="Token of events that must be counted, of `galatea ingest --token`.")
    ] = None,
    max_staleness: Annotated[
        str | None, Option("--max-staleness", help="Such as 5s: everything received until then must be counted.")
    ] = None,
    partial: Annotated[bool, Option("--partial", help="Answer from batch alone if speed is unavailable.")] = False,
    key_file: KeyFile = None,
    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False,
    as_csv: Annotated[bool, Option("--csv", help="CSV on stdout, like `format=csv` in the API.")] = False,
    parquet: Annotated[Path | None, Option("--parquet", help="Write this Parquet file, like `format=parquet`.")] = None,
) -> None:
    """Ask for metrics: `galatea ask net_sales --by total --range last_7_days`. All stores are included by default."""
    if as_json + as_csv + (parquet is not None) > 1:
        raise RequestError("--json, --csv and --parquet cannot be combined", do="choose one of them")
    options: MetricOptions = {}
    given: dict[str, Any] = {
        "range": named_range,
        "grain": grain,
        "by": _names(by),
        "store": ids_of(store, "--store"),
        "sort": sort,
        "top": top,
        "share": share,
        "compare": compare,
        "category": category,
        "brand": brand,
        "sku": ids_of(sku, "--sku"),
        "attributes": attributes,
        "hours": hours,
        "timezone": timezone,
        "as_of": as_of,
        "at_least": at_least,
        "max_staleness": max_staleness,
        "partial": partial,
    }
    options.update({name: value for name, value in given.items() if value})  # type: ignore[typeddict-item]
    answers = _answered(metrics, start, end, options, key_file)
    if as_json:
        shown = plain(answers.answers[0] if len(answers.answers) == 1 else answers)
        text_output().write(
            msgspec.json.format(msgspec.json.Encoder(decimal_format="number").encode(shown)).decode() + "\n"
        )
    elif as_csv:
        answers.to_csv(text_output())
    elif parquet is not None:
        _write_parquet(answers, parquet)
    else:
        for answer in answers.answers:
            print_answer(answer, days_in_words(answer, start, end))


def _write_parquet(answers: "Answers", file: Path) -> None:
    try:
        answers.to_parquet(file)
    except OSError as error:
        raise RequestError(f"{file} cannot be written: {error.strerror or error}", do="name another file") from error
    print_message(f"wrote {file}")


def _names(given: list[str] | None) -> list[str]:
    return [name for each in given or () for name in each.split(",")]


def ids_of(given: list[str] | None, option: str) -> list[str]:
    r"""As the API reads them: separated by commas, and a comma in an id is written `\,`."""
    if not given:
        return []
    from serving_layer.api.parameters import read_ids

    return read_ids(given, option)


def _answered(
    metrics: str, start: str | None, end: str | None, options: "MetricOptions", key_file: Path | None
) -> "Answers":
    with rest_client(Settings(), key_file) as galatea:
        return galatea.several(metrics.split(","), start=start, end=end, **options)


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """An answer as the API writes it: a field that has its default, such as None, is left out."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        every = ((each.encode_name, getattr(value, each.name), each.default) for each in fields)
        return {name: plain(held) for name, held, default in every if default is msgspec.NODEFAULT or held != default}
    if isinstance(value, Mapping):
        return {name: plain(held) for name, held in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def days_in_words(answer: "Answer", start: str | None, end: str | None) -> str:
    """For which time an answer is. `start`, `end`: as they were asked for; None where the answer has a named range."""
    of = answer.range
    if of is not None and of.start is not None and of.end is not None:
        last = of.end - timedelta(days=1)
        return f"on {last}" if of.start == last else f"from {of.start} to {last}"
    if of is not None and of.name is not None:
        return f"in `{of.name}`"
    return f"from {start} until {end or 'now'}"


def _print_nothing(answer: "Answer", days: str) -> None:
    """Say that there are no values, and when the newest event came."""
    newest = answer.as_of.speed_as_of
    if answer.as_of.loading:
        print_message(
            f"Nothing is known of {answer.metric} {days} yet: history is loading until the first publication."
        )
        return
    until = f"the newest event was received at {_instant(newest)}" if newest else "no event has been received yet"
    if newest is None and answer.as_of.publication:
        until = f"what is published was received before {_instant(answer.as_of.cut)}"
    print_message(f"There is nothing for {answer.metric} {days}; {until}.")


def print_answer(answer: "Answer", days: str = "") -> None:
    """Print a table of the values, and what they were computed from on stderr.

    Args:
        answer: to one metric.
        days: for which time it is, in words, for a sentence if there are no values.
    """
    rows = answer.to_rows()
    if all(row["value"] is None for row in rows):
        _print_nothing(answer, days)
    if not rows:
        return
    own = [name for name in rows[0] if name not in (*BESIDE_VALUE, *PROVENANCE)]
    own = [name for name in own if any(row[name] is not None for row in rows) or name == "value"]
    first = own.index("value")
    columns = [*own[:first], "when", *own[first:], "notes"]
    table = [
        [*(_text(row, name) for name in own[:first]), _when(row), *(_text(row, name) for name in own[first:])]
        for row in rows
    ]
    notes = [_notes(row) for row in rows]
    print_table(columns, [[*cells, note] for cells, note in zip(table, notes, strict=True)])
    about, unit = answer.as_of, answer.currency or answer.unit
    speed = f"speed as of {_instant(about.speed_as_of)}" if about.speed_as_of else "without speed"
    print_message(
        f"  {answer.metric} in {unit}; publication {about.publication}, cut {_instant(about.cut)}, {speed}, "
        f"{about.waiting_for_batch or 0:,} events wait for the next publication"
    )


def _when(row: "Row") -> str:
    """The local date or instant of a row; at the grains of a week, its place in it."""
    if row.get("weekday") is not None:
        return ""
    local = row.get("date") or row.get("local") or row["start"]
    return _instant(local) if isinstance(local, datetime) else str(local)


def _text(row: "Row", name: str) -> str:
    value = row[name]
    if value is None:
        return ""
    if name in ("share", "change", "change_points") and isinstance(value, int | Decimal):
        return f"{value:+.1f}" if name != "share" else f"{value:.1f}"
    if name in ("value", "before") and isinstance(value, int | Decimal):
        code = f" {row['currency']}" if row["currency"] else ""
        return f"{value:,}{code}" if row["unit"] in ("money", "n") else f"{value:,.2f}{code}"
    return str(value)


def _notes(row: "Row") -> str:
    notes = ["the rest"] if row.get("other") else []
    notes += [] if row["final"] else ["provisional"]
    return ", ".join([*notes, *str(row["flags"] or "").split(";")]).strip(", ")


def _instant(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
