"""What is said of a cluster is said to a cluster only, and nothing listens beyond loopback unless it has to."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from deploy.spark import driver_host, executor_options, executor_python, further_options, socket_options
from master_dataset.errors import OperatorError


def settings(tmp_path: Path, master: str, host: str = "") -> Settings:
    python = "python-of-the-workers"
    return Settings(home=tmp_path, spark_master=master, spark_driver_host=host, spark_cores=6, spark_python=python)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_a_local_master_has_no_executor_that_it_could_lose_and_its_driver_stays_on_loopback(
    tmp_path: Path, master: str
) -> None:
    local = settings(tmp_path, master, host="10.0.0.7")

    assert executor_options(local) == {"spark.storage.blockManagerHeartbeatTimeoutMs": "3650d"}
    assert driver_host(local) == "127.0.0.1"
    assert executor_python(local) == sys.executable


@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "spark://a:7077,b:7077", "local-cluster[2,1,512]"])
def test_an_application_takes_no_more_of_a_cluster_than_the_settings_say(tmp_path: Path, master: str) -> None:
    elsewhere = settings(tmp_path, master)

    options = executor_options(elsewhere)

    assert executor_python(elsewhere) == "python-of-the-workers"
    assert (options["spark.cores.max"], options["spark.executor.memory"]) == ("6", "1024m")


@pytest.mark.parametrize(
    ("master", "host", "expected"),
    [
        ("spark://127.0.0.1:7077", "", "127.0.0.1"),
        ("spark://localhost:7077", "", "127.0.0.1"),
        ("spark://spark-1:7077,spark-2:7077", "", ""),
        ("spark://spark-1:7077", "10.0.0.7", "10.0.0.7"),
        ("yarn", "", ""),
    ],
)
def test_a_driver_listens_where_executors_can_reach_it(tmp_path: Path, master: str, host: str, expected: str) -> None:
    assert driver_host(settings(tmp_path, master, host)) == expected


def test_master_dataset_and_checkpoints_lie_in_the_home_unless_the_settings_say_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    home, elsewhere = Settings(home=Path("home")), Settings(master_uri="lake", checkpoint_uri="s3a://galatea/marks/")

    assert home.paths.master_uri == str(tmp_path / "home" / "master")
    assert home.paths.checkpoint_uri == str(tmp_path / "home" / "checkpoints")
    assert (elsewhere.paths.master_uri, elsewhere.paths.checkpoint_uri) == (f"{tmp_path}/lake", "s3://galatea/marks")
    assert Settings(master_uri=(tmp_path / "lake").as_uri()).paths.master_uri == f"{tmp_path}/lake"


def test_further_options_of_spark_reach_it_and_never_replace_one_of_ours(tmp_path: Path) -> None:
    image = {"spark.kubernetes.container.image": "galatea:1"}
    with_image = Settings(home=tmp_path, spark_conf=image)

    assert further_options(with_image, {"spark.sql.session.timeZone": "UTC"}) == image
    with pytest.raises(OperatorError, match=r"names `spark\.kubernetes\.container\.image`"):
        further_options(with_image, image)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.authenticate.secret", "canary-1f3a"),
        ("spark.hadoop.fs.s3a.access.key", "canary-1f3a"),
        ("spark.hadoop.fs.azure.account.key.shops", "canary-1f3a"),
        ("spark.ssl.keyPassword", "canary-1f3a"),
        ("spark.driver.extraJavaOptions", "-Xss2m -Dx.trustStorePassword=canary-1f3a"),
    ],
)
def test_a_secret_among_further_options_of_spark_is_refused_and_not_repeated(
    tmp_path: Path, name: str, value: str
) -> None:
    settings = Settings(home=tmp_path, spark_conf={name: value})

    with pytest.raises(OperatorError, match=f"GALATEA_SPARK_CONF names `{name}`") as refused:
        further_options(settings, {})
    assert "canary-1f3a" not in refused.value.message
    assert "spark-defaults.conf" in refused.value.do


def test_where_a_secret_is_may_be_among_further_options_of_spark(tmp_path: Path) -> None:
    places = {
        "spark.authenticate.secret.file": "/run/galatea/spark",
        "spark.kubernetes.authenticate.oauthTokenFile": "/run/galatea/token",
        "spark.kubernetes.driver.secrets.galatea": "/run/galatea",
        "spark.kubernetes.executor.secretKeyRef.CASSANDRA": "galatea:password",
    }

    assert further_options(Settings(home=tmp_path, spark_conf=places), {}) == places


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("banana", "`GALATEA_SPARK_CONF`: not a JSON object"),
        ("[1]", "`GALATEA_SPARK_CONF`: must be a JSON object"),
        ('{"spark.task.cpus": 2}', "`GALATEA_SPARK_CONF`: `spark.task.cpus` must be a string"),
    ],
)
def test_further_options_that_are_no_json_object_of_texts_are_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, sentence: str
) -> None:
    monkeypatch.setenv("GALATEA_SPARK_CONF", text)

    with pytest.raises(InvalidSettingsError) as refused:
        Settings(home=tmp_path)

    assert refused.value.problems == [sentence]


ENABLED, FOLDER = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, with a path that leaves room for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_sockets_are_in_the_scratch_folder_unless_its_path_is_too_long(tmp_path: Path, short: Path) -> None:
    local, far = settings(tmp_path, "local[2]"), settings(tmp_path, "spark://127.0.0.1:7077")
    long = Path("/", "a" * 60, "b")

    options = socket_options(local, long)

    assert socket_options(local, Path("/srv/galatea/spark/speed")) == {ENABLED: "true"}
    assert socket_options(far, long) == {}
    assert (options[ENABLED], Path(options[FOLDER]).parent) == ("true", short)
    assert Path(options[FOLDER]).stat().st_mode & 0o777 == 0o700
    assert socket_options(local, long) == options


@pytest.mark.parametrize("way", ["open to others", "a link", "a file"])
def test_a_folder_of_sockets_that_others_can_use_is_refused(tmp_path: Path, short: Path, way: str) -> None:
    local, long = settings(tmp_path, "local[2]"), Path("/", "a" * 60, "b")
    folder = Path(socket_options(local, long)[FOLDER])
    if way == "open to others":
        folder.chmod(0o755)
    else:
        folder.rename(short / "elsewhere")
    if way == "a link":
        folder.symlink_to(short / "elsewhere")
    if way == "a file":
        folder.touch()

    with pytest.raises(OperatorError, match="the sockets of Spark") as refused:
        socket_options(local, long)
    assert "shorter path" in refused.value.do
