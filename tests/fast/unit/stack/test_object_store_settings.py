"""Settings of an object store: what is refused, what Spark and delta-rs get of them, and which jars that needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.session import get_session

from deploy.jars import spark_parts
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from deploy.spark import object_store_options
from master_dataset.errors import ObjectStoreAccessError
from master_dataset.object_store import ObjectStore, is_remote, local_path, object_store, spark_uri, use
from master_dataset.storage import credentials, options

REMOTE = {"master_uri": "s3://lake/master/", "s3_endpoint": "http://127.0.0.1:9000/", "s3_path_style": True}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    yield
    use(ObjectStore())


def test_without_a_uri_everything_is_local_and_needs_nothing(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)

    assert (settings.paths.remote, object_store_options(settings), spark_parts(settings)) == ({}, {}, ("spark",))
    assert settings.paths.folders == [tmp_path / "master", tmp_path / "checkpoints"]
    assert options(settings.paths.master_uri) is None


def test_the_settings_make_the_object_store_that_of_the_process(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, s3_region="eu-central-1", **REMOTE)

    assert object_store() == ObjectStore("http://127.0.0.1:9000", "eu-central-1", path_style=True)
    assert settings.paths.remote == {"GALATEA_MASTER_URI": "s3://lake/master"}
    assert settings.paths.folders == [tmp_path / "checkpoints"]
    assert spark_parts(settings) == ("spark", "s3")


def test_every_client_gets_the_same_place_and_commits_are_conditional(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, s3_region="eu-central-1", **REMOTE)

    of_delta, of_spark = options("s3://lake/master/x"), object_store_options(settings)

    assert of_delta is not None
    assert of_delta["AWS_ENDPOINT_URL"] == of_spark["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert of_delta["AWS_REGION"] == of_spark["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"
    assert of_delta["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] == "false"
    assert of_spark["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert of_delta["AWS_CONDITIONAL_PUT"] == "etag"
    assert of_delta["AWS_ALLOW_HTTP"] == "true"


def test_no_secret_is_an_option_of_spark_or_shown(tmp_path: Path) -> None:
    shown = f"{object_store_options(Settings(home=tmp_path, **REMOTE))} {credentials()!r} {object_store()!r}"

    assert "a-secret" not in shown
    assert "a-key" not in shown


@pytest.mark.parametrize(
    ("endpoint", "sentence"),
    [
        ("http://minio.example:9000", "must be https, except on this machine"),
        ("minio:9000", "must be http://HOST:PORT or https://HOST"),
        ("https://minio.example/path", "must be http://HOST:PORT or https://HOST"),
        ("https://key@minio.example", "must be http://HOST:PORT or https://HOST"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused(tmp_path: Path, endpoint: str, sentence: str) -> None:
    with pytest.raises(InvalidSettingsError, match=sentence):
        Settings(home=tmp_path, master_uri="s3://lake/master", s3_endpoint=endpoint)


def test_uris_have_sparks_scheme_for_spark_alone(tmp_path: Path) -> None:
    assert Settings(home=tmp_path, checkpoint_uri="s3a://lake/marks").paths.checkpoint_uri == "s3://lake/marks"
    assert (spark_uri("s3://lake/a"), spark_uri("/lake/a")) == ("s3a://lake/a", "/lake/a")
    assert (is_remote("s3://lake/a"), is_remote("/s3://lake"), local_path("s3://lake/a")) == (True, False, None)
    assert local_path("file:///lake/a") == Path("/lake/a")


def test_without_path_style_every_client_names_the_bucket_in_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://another.example")
    use(ObjectStore("https://s3.example:9000", "eu-central-1"))

    of_delta = options("s3://lake/master/x")

    assert of_delta is not None
    assert {of_delta[name] for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")} == {"https://lake.s3.example:9000"}
    assert of_delta["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] == "true"


def test_a_variable_that_only_some_clients_follow_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://another.example")
    Settings(home=tmp_path)

    with pytest.raises(InvalidSettingsError, match="AWS_ENDPOINT_URL is set and GALATEA_S3_ENDPOINT is not"):
        Settings(home=tmp_path, master_uri="s3://lake/master")


@pytest.mark.parametrize("name", ["AWS_PROFILE", "AWS_SECRET_ACCESS_KEY"])
def test_credentials_that_cannot_be_used_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("master_dataset.storage._session", get_session)
    if name == "AWS_PROFILE":
        monkeypatch.setenv(name, "nobodys")
    else:
        monkeypatch.delenv(name)
    use(ObjectStore("https://s3.example", "eu-central-1"))

    with pytest.raises(ObjectStoreAccessError, match="cannot be used") as refused:
        credentials()

    assert "AWS_PROFILE" in refused.value.do


@pytest.mark.parametrize("uri", ["s3://KEY:SECRET@lake/x", "s3:///x", "s3://my bucket/x"])
def test_what_is_no_bucket_is_refused_and_not_repeated(tmp_path: Path, uri: str) -> None:
    with pytest.raises(InvalidSettingsError, match="GALATEA_MASTER_URI must be s3://BUCKET/PREFIX") as refused:
        Settings(home=tmp_path, master_uri=uri)

    assert "SECRET" not in str(refused.value)
