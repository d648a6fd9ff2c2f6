"""Files that users load: YAML of every kind, YAML made of aliases, and CSV or JSON Lines of every kind.

An input is the kind of the file, a line feed, and the content. What is loaded is written again, and has to be the same
when it is read again.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import ClassVar, Self

import yaml

from deploy.reports.recipients import read_reports
from master_dataset.errors import GalateaError
from master_dataset.registry import stores_file
from master_dataset.registry.floor_plans import DrawnZone
from master_dataset.registry.floor_plans_file import load_zones, read_lines, write_lines
from master_dataset.registry.hidden_characters import hidden_character
from master_dataset.registry.products import Product, ProductSpool
from master_dataset.registry.products import decode_block as decode_products
from master_dataset.registry.products import encode_block as encode_products
from master_dataset.registry.products_file import read_stream as read_products
from master_dataset.registry.stores import WEEKDAYS, Store
from master_dataset.registry.targets import DIGITS, decode_block, encode_block
from master_dataset.registry.targets_file import Loaded
from master_dataset.registry.targets_file import read_stream as read_targets
from master_dataset.registry.yaml_text import MOST_CHARACTERS, MOST_NODES, read_yaml
from serving_layer.alerts import rules_file
from serving_layer.alerts.rules import AlertRules, RuleAuthor, fields_of
from serving_layer.saved.annotations import MAX_ANNOTATIONS, checked
from serving_layer.saved.annotations_file import read_annotations, read_stream
from tests.support.alert_tables import WorldVersions
from tests.system.fuzz.target import Outcome, PromiseBrokenError, Target
from tests.system.fuzz.targets.file_examples import CSV_EXAMPLES, CSV_WORDS, YAML_EXAMPLES, YAML_WORDS

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MOST_YAML = 40_000
"""Bytes of YAML: ten thousand are read in a fifth of a second, and more find nothing else."""
MOST_SAID = 20_000
"""Characters of an error, besides what it repeats of its file."""
STORES = {
    "1": Store(id="1", timezone="UTC", opening_hours=dict.fromkeys(WEEKDAYS, ("08:00-20:00",))),
    "a b": Store(id="a b", timezone="Asia/Tokyo"),
}
DECIMALS = {"1": 2, "a b": 0}
METRICS = {"net_sales": None, "traffic_in": 0, "labor_hours": 6}
Check = Callable[[bytes, Path], str]


def refused(error: GalateaError, size: int) -> Outcome:
    """PromiseBrokenError unless the error can be shown: text that can be encoded, of some length, with what to do.

    `size`: of the input, parts of which it may repeat.
    """
    for said in (error.message, error.do):
        if not said or len(said) > MOST_SAID + size:
            raise PromiseBrokenError(f"an error of {len(said)} characters: {said[:200]!r}")
        said.encode()  # a lone surrogate could be neither printed nor sent
    return Outcome(error.code, error.message)


class _Files(Target):
    """Kinds of files, each with the check of its loader."""

    head_end: ClassVar[bytes] = b"\n"
    kinds: ClassVar[Mapping[str, Check]]

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory()
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def check(self, value: bytes) -> Outcome:
        """Load it. An input without a kind is a file of each kind in turn, by its length."""
        name, _, content = value.partition(b"\n")
        kind = name.decode("latin-1")
        if kind not in self.kinds:
            kind, content = [*self.kinds][len(value) % len(self.kinds)], value
        try:
            return Outcome("", f"{kind} {self.kinds[kind](content, Path(self._folder.name, 'loaded.yaml'))}")
        except GalateaError as error:
            return refused(error, len(content))


# YAML


def _text(content: bytes) -> str:
    """As every loader decodes it: those that take a path refuse what is not UTF-8, before anything else."""
    return content.decode(errors="replace")


def _stores(content: bytes, _: Path) -> str:
    found = stores_file.read(_text(content))
    again = [Store.from_json(store.to_json()) for store in found]
    if again != found:
        raise PromiseBrokenError("a store is another one after it was stored")
    for store in found:
        store.terms  # noqa: B018 - by which its records are parsed
    return " ".join(sorted({name for store in found for name in json.loads(store.to_json())}))


def _alerts(content: bytes, path: Path) -> str:
    path.write_bytes(content)
    found = rules_file.load(path)
    rules = AlertRules(WorldVersions(lambda: NOW))
    wanted = [(rule.get("tenant", found.tenant or "default"), rule) for rule in found.rules]
    changes = rules_file.plan_changes(rules, STORES, wanted)
    for change in changes:
        if change.after is None:
            raise PromiseBrokenError("a rule of the file is removed")
        author = RuleAuthor(change.tenant, STORES)
        if rules.judged(author, fields_of(change.after)) != change.after:
            raise PromiseBrokenError("a rule is another one when it is read as it is shown")
    rules_file.apply_changes(rules, changes)
    if any(each.does != "keep" for each in rules_file.plan_changes(rules, STORES, wanted)):
        raise PromiseBrokenError("rules that were applied would be changed again")
    return " ".join(sorted({type(each.after).__name__ for each in changes}))


def _annotations(content: bytes, path: Path) -> str:
    path.write_bytes(content)
    return _noted(path)


def _noted(path: Path) -> str:
    found = read_annotations(path)
    if len(found) > MAX_ANNOTATIONS:
        raise PromiseBrokenError("more annotations than there may be")
    kinds = set()
    for each in found:
        made = checked("default", each, STORES, ("a test", NOW))
        if hidden_character(made.text, "any"):
            raise PromiseBrokenError(f"a text that cannot be seen: {made.text!r}")
        kinds.add(made.kind)
    return " ".join(sorted(kinds))


def _zones(content: bytes, path: Path) -> str:
    path.write_bytes(content)
    return _drawn(load_zones(path, ()))


def _drawn(found: tuple[DrawnZone, ...]) -> str:
    again = read_lines(write_lines(found), ())
    if again != found:
        raise PromiseBrokenError(f"zones differ when they are read as they are shown: {found} {again}")
    return f"{sorted({'rectangle' if each.rectangle else 'polygon' for each in found})}"


def _reports(content: bytes, path: Path) -> str:
    path.write_bytes(content)
    return " ".join(sorted({f"{each.period} {each.language}" for each in read_reports(path)}))


class YamlFiles(_Files):
    """`yaml`: every file that is read as YAML."""

    name: ClassVar[str] = "yaml"
    words: ClassVar[Sequence[bytes]] = YAML_WORDS
    most_bytes: ClassVar[int] = MOST_YAML
    kinds: ClassVar[Mapping[str, Check]] = {
        "stores": _stores,
        "alerts": _alerts,
        "annotations": _annotations,
        "zones": _zones,
        "reports": _reports,
    }

    def examples(self) -> Sequence[bytes]:
        return [f"{kind}\n{text}".encode() for kind, text in YAML_EXAMPLES]


# YAML made of aliases


def _unfolded(content: bytes, _: Path) -> str:
    document = read_yaml(_text(content))
    nodes, characters = _size(document)
    if nodes > MOST_NODES or characters > MOST_CHARACTERS:
        raise PromiseBrokenError(f"{nodes:,} values and {characters:,} characters are more than there may be")
    written = json.dumps(document)  # fails for a document that contains itself
    if json.loads(written) != document:
        raise PromiseBrokenError("a document is another one without its aliases")
    if document is not None and nodes < 1_000 and read_yaml(_Unfolding.text(document)) != document:
        raise PromiseBrokenError("a document is another one when its aliases are written out")
    return type(document).__name__


class _Unfolding(yaml.SafeDumper):
    """Writes aliases out."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as the class above it has it
        return True

    @classmethod
    def text(cls, document: object) -> str:
        return str(yaml.dump(document, Dumper=cls, allow_unicode=False, default_style='"', width=10**6))


def _size(document: object) -> tuple[int, int]:
    """Values and characters, with those of aliases counted each time."""
    known: dict[int, tuple[int, int]] = {}

    def size(part: object) -> tuple[int, int]:
        if isinstance(part, str) or part is None:
            return 1, len(part or "")
        if id(part) not in known:
            parts = part if isinstance(part, list) else [each for pair in part.items() for each in pair]  # type: ignore[attr-defined]
            sizes = [size(each) for each in parts]
            known[id(part)] = 1 + sum(nodes for nodes, _ in sizes), sum(characters for _, characters in sizes)
        return known[id(part)]

    return size(document)


class AliasFiles(_Files):
    """`yaml_aliases`: documents in which most values are aliases, of each other and of themselves."""

    name: ClassVar[str] = "yaml_aliases"
    words: ClassVar[Sequence[bytes]] = YAML_WORDS
    most_bytes: ClassVar[int] = MOST_YAML
    kinds: ClassVar[Mapping[str, Check]] = {"any": _unfolded, "stores": _stores, "alerts": _alerts, "zones": _zones}

    def examples(self) -> Sequence[bytes]:
        chance = Random("aliases")
        return [_of_aliases(chance) for _ in range(60)]

    def mutated(self, pool: Sequence[bytes], chance: Random) -> bytes:
        return _of_aliases(chance) if chance.random() < 0.4 else super().mutated(pool, chance)


def _of_aliases(chance: Random) -> bytes:
    """Anchors, each made of former ones: bombs, chains, cycles, merges and unknown names."""
    kind = chance.choice(("any", "any", "stores", "alerts", "zones"))
    depth, width = chance.choice(((3, 2), (8, 3), (20, 10), (60, 2), (200, 1), (5, 500), (40, 40)))
    leaf = chance.choice(("x", "x" * 2_000, "{id: 1, timezone: UTC}", '"\\u00e9"', "[]", "{}", "~", "1"))
    lines = [f"a0: &a0 {leaf}"]
    for level in range(1, depth):
        former = [f"*a{max(0, level - chance.choice((1, 1, 1, 2)))}" for _ in range(width)]
        if chance.random() < 0.02:
            former.append(f"*a{level + chance.randrange(2)}")
        if chance.random() < 0.3:
            value = "{" + ", ".join(f"k{number}: {each}" for number, each in enumerate(former)) + "}"
        elif chance.random() < 0.1:
            value = f"{{<<: {former[0]}, {former[-1]} : x}}"
        else:
            value = f"[{', '.join(former)}]"
        lines.append(f"a{level}: &a{chance.choice((level, level, level, level, 0))} {value}")
    known = {"stores": "stores", "alerts": "rules", "zones": "zones"}.get(kind, "top")
    lines.append(f"{known}: [{', '.join([f'*a{chance.randrange(depth)}'] * chance.choice((1, 1, 3)))}]")
    if chance.random() < 0.5:
        lines = [f"{known}:", *(f"- {line.partition(': ')[2]}" for line in lines)]
    return f"{kind}\n{chr(10).join(lines)}\n".encode()


# CSV and JSON Lines


def _csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> io.BytesIO:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return io.BytesIO(text.getvalue().encode())


def _targets(content: bytes, _: Path) -> str:
    found = read_targets(io.BytesIO(content), DECIMALS, METRICS)
    rows = [
        (store, day, metric, format(Decimal(value).scaleb(-DIGITS), "f"))
        for store, own in found.items()
        for metric, days in own.items()
        for day, value in days.items()
    ]
    if read_targets(_csv(("store", "day", "metric", "value"), rows), DECIMALS, METRICS) != found:
        raise PromiseBrokenError("targets are others when they are read as they were loaded")
    _blocks_of(found)
    return " ".join(sorted({metric for own in found.values() for metric in own}))


def _blocks_of(found: Loaded) -> None:
    for own in found.values():
        if decode_block(encode_block(own)) != own:
            raise PromiseBrokenError("targets are others after they were stored")


def _products(content: bytes, _: Path) -> str:
    found = _spooled(io.BytesIO(content))
    rows = [
        (each.sku, each.title, each.brand, "/".join(each.category), each.gtin, each.valid_from or "")
        for versions in found.values()
        for each in versions
    ]
    if _spooled(_csv(("sku", "title", "brand", "category", "gtin", "valid_from"), rows)) != found:
        raise PromiseBrokenError(f"products are others when they are read as they were loaded: {found}")
    if decode_products(encode_products(each for versions in found.values() for each in versions)) != found:
        raise PromiseBrokenError("products are others after they were stored")
    return f"{sorted({bool(each.category) for versions in found.values() for each in versions})}"


def _spooled(stream: io.BytesIO) -> dict[str, tuple[Product, ...]]:
    with ProductSpool() as spool:
        read_products(stream, spool)
        return {sku: tuple(each) for _, products in spool.by_bucket(4) for sku, each in products.items()}


def _lines(content: bytes, path: Path) -> str:
    file = path.with_suffix(".csv")
    file.write_bytes(content)
    found = read_annotations(file)
    rows = [(each.first_day, each.last_day or "", each.kind, each.text, ",".join(each.stores)) for each in found]
    again = read_stream(_csv(("first_day", "last_day", "kind", "text", "stores"), rows))
    if not any("," in store for each in found for store in each.stores) and [each[:-1] for each in again] != [
        (*each[:-2], [*each.stores]) for each in found
    ]:
        raise PromiseBrokenError("annotations are others when they are read as they were loaded")
    return _noted(file)


def _zone_lines(content: bytes, _: Path) -> str:
    return _drawn(read_lines(_text(content), ()))


class CsvFiles(_Files):
    """`csv`: every file that is read as CSV, JSON Lines or lines of text."""

    name: ClassVar[str] = "csv"
    words: ClassVar[Sequence[bytes]] = CSV_WORDS
    kinds: ClassVar[Mapping[str, Check]] = {
        "targets": _targets,
        "products": _products,
        "annotations": _lines,
        "zones": _zone_lines,
    }

    def examples(self) -> Sequence[bytes]:
        return [f"{kind}\n{text}".encode() for kind, text in CSV_EXAMPLES]
