"""YAML that users write, bounded after its aliases are written out.

An alias (`*name`) repeats the value of an anchor (`&name`) in a few bytes, so that a short file can stand for a long
one. The size that counts is that of the file without aliases.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from master_dataset.errors import BadFileError
from master_dataset.registry.hidden_characters import visible

MOST_NODES = 1_000_000
"""Lists, mappings, keys and single values."""
MOST_CHARACTERS = 4 * 1024 * 1024
"""Of all keys and single values."""
MOST_DEPTH = 50
"""Lists and mappings within each other."""
_TOO_DEEP = f"more than {MOST_DEPTH} lists and mappings lie within each other"
_SHOWN = 300
"""Characters that an error repeats of what the parser says."""
_SHOWN_KEY = 100
"""Characters of a key that an error repeats."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Only an escape such as `"\\uD800"` gives one. No other part of the platform can store, send or show it."""
_DO = "Correct it and load it again."


class _Loader(yaml.BaseLoader):
    """Refuses deep nesting while it reads.

    For each bracket, the scanner looks at all brackets that are open: a small file of thousands would take minutes.
    """

    def fetch_flow_collection_start(self, token_class: object) -> None:
        """Read `[` or `{`."""
        if self.flow_level >= MOST_DEPTH:
            raise yaml.YAMLError(_TOO_DEEP)
        super().fetch_flow_collection_start(token_class)


class _Size(NamedTuple):
    nodes: int
    characters: int
    depth: int


def read_text(file: Path, most_bytes: int, *, if_too_long: str, if_unreadable: str) -> str:
    """Read a file, which may be endless, such as `/dev/zero`.

    Args:
        file: Its path.
        most_bytes: How long it may be.
        if_too_long: What the user can do if it is longer.
        if_unreadable: What the user can do if it cannot be read.

    Raises:
        BadFileError: It is longer, cannot be read, or is not UTF-8.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(most_bytes + 1)
    except OSError as error:
        raise BadFileError(f"`{file}` cannot be read: {error.strerror}.", do=if_unreadable) from error
    if len(content) > most_bytes:
        raise BadFileError(f"`{file}` is larger than {most_bytes:,} bytes.", do=if_too_long)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadFileError(f"`{file}` is not UTF-8.", do="Save it as UTF-8.") from error


def read_yaml(text: str, *, most_characters: int = MOST_CHARACTERS, surrogates: bool = False) -> Any:  # noqa: ANN401 - any YAML
    """Read a YAML document. Every scalar stays text: the field decides what it means.

    Args:
        text: The document.
        most_characters: Characters of all keys and values, with aliases written out. The limit of the file is a good
            one: aliases then allow nothing that the file could not say without them.
        surrogates: Whether texts may have half of a surrogate pair, because the caller refuses those by their fields.

    Returns:
        str, list and dict only; None for an empty document.

    Raises:
        BadFileError: It is not YAML, contains itself, has a key twice in one mapping (the parser would keep only the
            last), has half of a surrogate pair, or is too large with its aliases written out.
    """
    loader = _loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        _Measure(most_characters, surrogates=surrogates).size(root)
        return loader.construct_document(root)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the last two: `"\\UFFFFFFFF"`
        raise _not_yaml(str(error)) from error
    except RecursionError as error:
        raise _not_yaml(_TOO_DEEP) from error
    finally:
        loader.dispose()


def _loader(text: str) -> Any:  # noqa: ANN401 - the methods of a loader are not typed
    try:
        return _Loader(text)
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise _not_yaml(str(error)) from error


def _not_yaml(why: str) -> BadFileError:
    said = visible(" ".join(why.split()))
    return BadFileError(f"The file is not YAML: {said[:_SHOWN]}.", do=_DO)


def _too_large(what: str, do: str) -> BadFileError:
    return BadFileError(f"The file has {what}.", do=do)


def _refuse_repeated(mapping: yaml.MappingNode) -> None:
    names = set()
    for key, _ in mapping.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in names:
                shown = visible(key.value[:_SHOWN_KEY])
                message = f"The mapping has the key `{shown}` again in line {key.start_mark.line + 1}."
                raise BadFileError(message, do="Join what is under both, or remove one of them.", code="repeated_field")
            names.add(key.value)


def _refuse_surrogates(scalar: yaml.ScalarNode) -> None:
    if not scalar.value.isascii() and _SURROGATE.search(scalar.value):
        shown = visible(scalar.value[:_SHOWN_KEY])
        message = f"The text `{shown}` in line {scalar.start_mark.line + 1} has half of a surrogate pair."
        raise BadFileError(message, do="Write the character itself, or its number as `\\U` and eight digits.")


class _Measure:
    """Measures nodes with their aliases written out; each node is looked at once."""

    def __init__(self, most_characters: int, *, surrogates: bool) -> None:
        self._most_characters, self._surrogates = most_characters, surrogates
        self._known: dict[yaml.Node, _Size | None] = {}
        """None for a node that is being measured."""

    def size(self, node: yaml.Node) -> _Size:
        """The size of a node with all that it contains. Raises BadFileError."""
        if node in self._known:
            known = self._known[node]
            if known is None:
                message = f"The list or mapping in line {node.start_mark.line + 1} contains itself through an alias."
                raise BadFileError(message, do="Correct it: write the value instead of the alias.")
            return known
        self._known[node] = None
        found = self._checked(self._measured(node))
        self._known[node] = found
        return found

    def _measured(self, node: yaml.Node) -> _Size:
        if isinstance(node, yaml.ScalarNode):
            if not self._surrogates:
                _refuse_surrogates(node)
            return _Size(1, len(node.value), 0)
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            _refuse_repeated(node)
            parts = [part for pair in node.value for part in pair]
        nodes, characters, depth = 1, 0, 0
        for part in parts:
            size = self.size(part)
            nodes, characters, depth = nodes + size.nodes, characters + size.characters, max(depth, size.depth)
        return _Size(nodes, characters, depth + 1)

    def _checked(self, size: _Size) -> _Size:
        unfolded = "once its aliases are written out"
        fewer = "Use fewer aliases (`*name`), or split the file."
        if size.nodes > MOST_NODES:
            raise _too_large(f"more than {MOST_NODES:,} values {unfolded}", fewer)
        if size.characters > self._most_characters:
            raise _too_large(f"more than {self._most_characters:,} characters {unfolded}", fewer)
        if size.depth > MOST_DEPTH:
            raise _too_large(f"more than {MOST_DEPTH} lists and mappings within each other {unfolded}", "Nest less.")
        return size
