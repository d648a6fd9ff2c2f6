"""The key file: made once, private, and the same for every process of a deployment."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from deploy.secrets_key import register, register_first, replace_key, secrets_key
from deploy.settings import Settings
from master_dataset.errors import OperatorError
from tests.support.cassandra_rows import Rows

if TYPE_CHECKING:
    from cassandra.cluster import Session


@pytest.fixture
def session() -> "Session":
    return cast("Session", Rows({"secrets_key": ("name",)}))


def home(folder: Path, **settings: object) -> Settings:
    folder.mkdir(exist_ok=True)
    return Settings(home=str(folder), **settings)


def test_the_key_is_made_at_first_use_for_its_owner_alone_and_stays(tmp_path: Path, session: "Session") -> None:
    settings = home(tmp_path / "home")

    made = register(settings, session)
    again = secrets_key(settings, session)

    assert made.fingerprint == again.fingerprint
    assert (settings.home / "secrets.key").stat().st_mode & 0o777 == 0o600


def test_a_key_file_of_the_home_that_others_can_read_is_for_its_owner_alone_again(
    tmp_path: Path, session: "Session"
) -> None:
    settings = home(tmp_path / "home")
    made = register(settings, session)
    (settings.home / "secrets.key").chmod(0o660)

    assert secrets_key(settings, session).fingerprint == made.fingerprint
    assert (settings.home / "secrets.key").stat().st_mode & 0o777 == 0o600


def test_a_home_without_the_key_file_makes_no_other_and_says_where_it_is_missing(
    tmp_path: Path, session: "Session"
) -> None:
    register(home(tmp_path / "one"), session)
    other = home(tmp_path / "other")

    with pytest.raises(OperatorError) as found:
        secrets_key(other, session)

    assert str(other.home / "secrets.key") in str(found.value)
    assert "GALATEA_SECRETS_KEY_FILE" in found.value.do
    assert not (other.home / "secrets.key").exists()


@pytest.mark.parametrize("is_lost", [True, False])
def test_cassandra_starts_in_a_home_whose_key_file_is_lost_or_another_one(
    tmp_path: Path, session: "Session", *, is_lost: bool
) -> None:
    one, other = home(tmp_path / "one"), home(tmp_path / "other")
    register_first(one, session)
    fingerprint = secrets_key(one, session).fingerprint
    if not is_lost:
        register(other, cast("Session", Rows({"secrets_key": ("name",)})))

    register_first(other, session)  # what mends it, `galatea migrate --new-secrets-key`, needs Cassandra

    assert secrets_key(one, session).fingerprint == fingerprint
    assert (other.home / "secrets.key").exists() is not is_lost


def test_another_key_is_refused_before_it_takes_every_api_key_for_forged(tmp_path: Path, session: "Session") -> None:
    one, other = home(tmp_path / "one"), home(tmp_path / "other")
    register(one, session)
    (other.home / "secrets.key").write_text("z" * 40)
    (other.home / "secrets.key").chmod(0o600)

    with pytest.raises(OperatorError, match="another key"):
        secrets_key(other, session)
    with pytest.raises(OperatorError, match="another key"):
        register(other, session)


def test_two_homes_that_begin_at_once_do_not_both_go_on(tmp_path: Path, session: "Session") -> None:
    one, other = home(tmp_path / "one"), home(tmp_path / "other")
    made = [secrets_key(each, session).fingerprint for each in (one, other)]  # nothing is registered yet

    register(one, session)

    assert len(set(made)) == 2
    with pytest.raises(OperatorError, match="another key"):
        register(other, session)


def test_a_file_that_a_setting_names_is_used_and_has_to_be_private(tmp_path: Path, session: "Session") -> None:
    file = tmp_path / "mounted"
    file.write_text("k" * 44 + "\n")
    file.chmod(0o400)
    settings = home(tmp_path / "home", secrets_key_file=str(file))

    assert register(settings, session).fingerprint
    assert not (settings.home / "secrets.key").exists()

    file.chmod(0o644)
    with pytest.raises(OperatorError, match="can be read by others"):
        secrets_key(settings, session)


def test_a_file_that_is_too_short_for_a_key_is_refused(tmp_path: Path, session: "Session") -> None:
    file = tmp_path / "mounted"
    file.write_text("short")
    file.chmod(0o600)

    with pytest.raises(OperatorError, match="at least 32"):
        register(home(tmp_path / "home", secrets_key_file=str(file)), session)


def test_a_lost_key_is_replaced_on_purpose_only(tmp_path: Path, session: "Session") -> None:
    register(home(tmp_path / "lost"), session)
    new = home(tmp_path / "new")

    replaced = replace_key(new, session)

    assert secrets_key(new, session).fingerprint == replaced.fingerprint
