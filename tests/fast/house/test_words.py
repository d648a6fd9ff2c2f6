"""The repository names no machine, folder or mirror of the people who work on it."""

import re

from tests.fast.house.tree import named, text, tracked

HOME = re.compile(r"(?<![\w.{$])/(?:home|Users|root|work|mnt|scratch)/\w")
REGISTRY = re.compile(
    r"\b(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|maven\.org|maven\.apache\.org|jfrog\.io|artifactory|nexus|npmjs\.org)\b"
)
DEFAULT = {"deploy/sections.py", "docs/reference/settings.md"}
"""The one default setting, and the page that is written from it."""
LOCKS = {"uv.lock", "deploy/jars/jars.lock.toml"}
HERE = "tests/fast/house/test_words.py"


def places(pattern: re.Pattern[str], allowed: set[str]) -> list[str]:
    """File and line of every match outside of the allowed files."""
    return [
        f"{named(path)}:{number}"
        for path in tracked()
        if named(path) not in {*allowed, HERE}
        for number, line in enumerate(text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    assert places(HOME, set()) == []


def test_no_file_names_a_package_registry_but_the_default_setting() -> None:
    assert places(REGISTRY, DEFAULT | LOCKS) == []


def test_the_default_setting_names_one_registry_once() -> None:
    assert len(places(REGISTRY, LOCKS | {"docs/reference/settings.md"})) == 1


def test_the_lock_points_to_the_public_index_alone() -> None:
    uv = next(path for path in tracked() if named(path) == "uv.lock")
    registries = set(re.findall(r'registry = "([^"]+)"', text(uv)))

    assert len(registries) == 1
    assert re.fullmatch(
        r"https://[a-z]+\.org/simple", registries.pop()
    )  # the public one; a mirror would be named otherwise


def test_no_page_or_comment_points_outside_of_the_repository() -> None:
    assert places(re.compile(r"\.\./shared\b|\bmodels\.md\b|\bdesign\.md\b|\breliability\.md\b"), set()) == []
