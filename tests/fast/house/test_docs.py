"""Pages say what the code says, and lead somewhere."""

import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from deploy.settings import Settings
from galatea.cli.reference.files import MEASURED_PAGE, MEASUREMENTS, files, measured_page, shown
from galatea.cli.reference.files import pages as reference
from galatea.cli.reference.operator_pages import command_page, verbs
from lab.guarantees.experiment import registered as experiments
from master_dataset.errors import GalateaError
from master_dataset.parsing.results import Reason
from serving_layer.health.alarms import RULES
from serving_layer.http.problem_types import family
from tests.fast.house.tree import ROOT, named, pages, product, text
from views import registered_views
from views.metrics import registered_metrics

REFERENCE = ROOT / "docs" / "reference"
DECISIONS = sorted(path for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
SECTIONS = ["Status", "Context", "Decision", "Consequences", "Rejected"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(?:^|`|\s)galatea ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
MAKE = re.compile(r"(?:^|`|\s)make ([a-z]+)\b")
EVENT = re.compile(r"`([a-z_]+)\.([a-z_]+)`")
NOT_EVENTS = {
    "metrics.enabled",
    "speed.claimed",
    "recompute.compute",
    "recompute.plan",
    "recompute.publish",
    "stores.missing",
    "stores.yaml",
    "alerts.jsonl",
}
"""Values of the chart, failpoints, OpenLineage jobs, fields of responses and files that look like log events."""
ROUTE = re.compile(r"(?<!:4318)/v1((?:/[A-Za-z0-9_{}-]+)+)")
GUIDES = [
    page for page in pages() if named(page).startswith(("docs/how-to", "docs/expl", "docs/tut", "README", "CONTR"))
]


def anchors(page: Path) -> set[str]:
    """As a Markdown viewer makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_of(page: Path) -> str:
    """What stands in code: blocks and backquotes, a line each."""
    blocks = re.findall(r"^    .+$|^```.+?^```", text(page), re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`[^`\n]+`", text(page))])


@cache
def logged_events() -> frozenset[str]:
    """The events that the product logs, as far as a literal names them."""
    calls = re.compile(r'\blog(?:ger)?\.[a-z]+\(\s*"([a-z_]+\.[a-z_]+)"(?: if [^"]*? else "([a-z_]+\.[a-z_]+)")?')
    return frozenset(event for path in product() for call in calls.findall(text(path)) for event in call if event)


@pytest.mark.parametrize("page", pages(), ids=named)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(text(page)):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        found = (page.parent / target).resolve() if target else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            lost.append(link)

    assert lost == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_every_command_on_a_page_exists(page: Path) -> None:
    known = {words for words, _ in verbs()}
    first = {words[0] for words in known}
    groups = {words[0] for words in known if len(words) > 1}
    targets = set(re.findall(r"^([a-z]+):", text(ROOT / "Makefile"), re.MULTILINE))
    shown = code_of(page)
    wrong = [verb for verb, _ in COMMAND.findall(shown) if verb not in first]
    wrong += [f"{verb} {word}" for verb, word in COMMAND.findall(shown) if verb in groups and (verb, word) not in known]
    wrong += [f"make {target}" for target in MAKE.findall(shown) if target not in targets]

    assert wrong == []


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_every_rest_path_on_a_page_exists(page: Path) -> None:
    paths = json.loads(text(REFERENCE / "openapi.json"))["paths"]
    known = [path.removeprefix("/v1").split("/")[1:] for path in paths if path.startswith("/v1")]

    def exists(segments: list[str]) -> bool:
        """A page may name the first segments of a path."""
        return any(
            all(each.startswith("{") or each == segment for each, segment in zip(path, segments, strict=False))
            for path in known
            if len(path) >= len(segments)
        )

    assert [route for route in ROUTE.findall(text(page)) if not exists(route.split("/")[1:])] == []


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_every_log_event_on_a_page_is_logged(page: Path) -> None:
    logged = logged_events()
    components = {event.split(".")[0] for event in logged}
    shown = {f"{component}.{event}" for component, event in EVENT.findall(text(page)) if component in components}

    assert sorted(shown - logged - NOT_EVENTS) == []


def test_the_reference_is_what_the_code_says_now() -> None:
    stale = [name for name, said in files().items() if not (file := REFERENCE / name).exists() or text(file) != said]

    assert stale == [], "run `make docs`"


def test_the_reference_has_no_file_that_nothing_writes() -> None:
    there = {path.relative_to(REFERENCE).as_posix() for path in REFERENCE.rglob("*") if path.is_file()}

    assert there == set(files())


def test_every_verb_has_help_and_every_option_a_meaning() -> None:
    silent = [" ".join(words) for words, verb in verbs() if not verb.help]
    silent += [f"{' '.join(words)} {each.name}" for words, verb in verbs() for each in verb.params if not each.help]

    assert silent == []


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in Settings.catalogue().items() if not field.description] == []


def test_every_alarm_has_its_line_in_the_monitoring_guide() -> None:
    page = text(ROOT / "docs" / "how-to" / "monitoring.md")

    assert [name for name in RULES if f"| [`{name}`](runbooks.md#{name}) |" not in page] == []


def test_every_metric_of_a_process_has_its_line_in_the_monitoring_guide() -> None:
    page = text(ROOT / "docs" / "how-to" / "monitoring.md")
    made = {
        name
        for path in product()
        for name in re.findall(r'(?:Gauge|Counter|Histogram|Family|Pressure)\(\s*"(galatea_\w+)"', text(path))
    }

    assert len(made) > 10
    assert sorted(name for name in made if f"| `{name}" not in page) == []


def test_every_view_and_metric_stands_on_its_page() -> None:
    written = {name: page.text() for name, page in reference().items()}

    assert [view.name for view in registered_views() if f"## `{view.name}`" not in written["views"]] == []
    assert [metric for metric in registered_metrics() if f"| `{metric}` |" not in written["metrics"]] == []


def test_every_code_that_an_answer_can_carry_has_an_anchor() -> None:
    page = ROOT / "docs" / "reference" / "errors.md"
    classes = {error.code for error in family(GalateaError)} - {GalateaError.code}
    literals = set()
    for path in product():
        literals |= set(re.findall(r'\bcode="([a-z0-9_]+)"', text(path)))
        if "_bad(" in text(path):
            literals |= set(re.findall(r'_bad\([^#]*?"([a-z][a-z0-9_]+)"\s*\)', text(path)))
    reasons = {reason.value for reason in Reason}

    assert sorted((classes | literals) - anchors(page) - reasons) == []
    assert [reason for reason in reasons if f"| `{reason}` |" not in text(page)] == []


@pytest.mark.parametrize("decision", DECISIONS, ids=named)
def test_every_decision_has_its_sections_in_order(decision: Path) -> None:
    number = decision.name[:4]

    assert re.findall(r"^## (.+)$", text(decision), re.MULTILINE) == SECTIONS
    assert text(decision).startswith(f"# {number}: ")
    assert decision.name in text(decision.parent / "README.md")


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_readme_shows_every_folder_of_the_product() -> None:
    packages = tomllib.loads(text(ROOT / "pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    shown = text(ROOT / "README.md")

    assert [name for name in packages if f"    {name}/" not in shown] == []


def test_measured_tables_are_those_of_the_kept_run() -> None:
    assert measured_page() == text(MEASURED_PAGE), "run `make docs`"


def test_every_experiment_is_on_the_page_and_came_to_what_was_expected() -> None:
    kept = json.loads(text(MEASUREMENTS))["experiments"]

    assert shown(text(MEASURED_PAGE)) == [each["id"] for each in kept] == list(experiments())
    assert {each["verdict"] for each in kept} == {"as expected"}


def test_the_page_of_commands_names_arguments_as_they_are_typed_and_both_words_of_a_flag() -> None:
    page = command_page().text()

    assert re.findall(r"`\[|_` \||`id_`", page) == []
    assert "| `--replayed / --open` |" in page
