"""Commands that ask REST read the operator's key in the home, or a file that `--key-file` names."""

from pathlib import Path

import pytest

from deploy.secret_files import operator_key
from deploy.settings import Settings
from galatea.cli.common.rest import rest_client
from master_dataset.errors import OperatorError


def mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"))


def test_the_operators_key_that_others_can_read_is_for_its_owner_alone_again(settings: Settings) -> None:
    """Kubernetes gives the group of a volume the right to all files at each mount, also of a job's pod."""
    file = settings.home / "operator.key"
    operator_key(file)
    file.chmod(0o660)

    with rest_client(settings, None):
        pass

    assert mode(file) == 0o600


def test_a_key_that_somebody_else_keeps_is_refused_if_others_can_read_it(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "acme.key"
    file.write_text("acme")
    file.chmod(0o660)

    with pytest.raises(OperatorError, match="of --key-file can be read by others"), rest_client(settings, file):
        pass

    assert mode(file) == 0o660


@pytest.mark.parametrize("given", [None, "acme.key"])
def test_a_key_that_is_missing_is_named_and_none_is_made(settings: Settings, tmp_path: Path, given: str | None) -> None:
    file = tmp_path / given if given else settings.home / "operator.key"

    with pytest.raises(OperatorError) as found, rest_client(settings, tmp_path / given if given else None):
        pass

    assert found.value.message == f"there is no key in {file}"
    assert "--key-file" in found.value.do
    assert not file.exists()


def test_an_operators_key_that_cannot_be_read_is_named(settings: Settings) -> None:
    (settings.home / "operator.key").mkdir(parents=True)

    with pytest.raises(OperatorError, match=r"the operator's key in .*operator\.key cannot be read: Is a directory"):
        rest_client(settings, None).__enter__()
