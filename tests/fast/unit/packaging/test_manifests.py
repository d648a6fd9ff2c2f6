"""The files for containers, Kubernetes and systemd: they name components and settings that exist."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import SecretStr

from deploy.image.sbom import bill_of_materials
from deploy.jars import locked_jars
from deploy.settings import Settings
from galatea.cli.main import COMMANDS
from galatea.cli.run import Runnable

DEPLOY = Path(__file__).parents[4] / "deploy"
COMPOSE, CHART, UNITS = DEPLOY / "compose", DEPLOY / "chart", DEPLOY / "systemd"
OF_COMPOSE = {
    "GALATEA_IMAGE",
    "GALATEA_ENV_FILE",
    "GALATEA_SECRETS",
    "GALATEA_PUBLISH",
    "GALATEA_PUBLISH_API",
    "GALATEA_PUBLISH_HOSTS",
}
"""Variables of the Compose files themselves."""
_VARIABLE = re.compile(r"GALATEA_[A-Z0-9_]*[A-Z0-9]")


def manifests() -> Iterator[Path]:
    yield DEPLOY / "image" / "Containerfile"
    for folder in (COMPOSE, CHART, UNITS):
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("path", [*manifests()], ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_variable_is_a_setting(path: Path) -> None:
    known = {f"GALATEA_{name.upper()}" for name in Settings.catalogue()} | OF_COMPOSE

    assert set(_VARIABLE.findall(path.read_text())) <= known


def test_where_rest_listens_on_every_address_it_has_names() -> None:
    api = read_yaml(COMPOSE / "compose.app.yaml")["services"]["api"]["environment"]
    chart = (CHART / "templates" / "settings.yaml").read_text()

    assert api == {"GALATEA_API_HOST": "0.0.0.0", "GALATEA_API_HOSTS": "api,${GALATEA_PUBLISH_HOSTS:-}"}  # noqa: S104
    assert 'set $settings "GALATEA_API_URL" (printf "%s://%s:8000" $scheme $service)' in chart  # jobs ask it
    assert 'set $settings "GALATEA_API_HOSTS" (join "," (concat $own .Values.hosts))' in chart
    assert read_yaml(CHART / "values.yaml")["hosts"] == []


def test_only_the_process_of_sql_listens_for_it_on_every_address() -> None:
    """Each process that has such an address needs a certificate, also where an ingress has the one of REST."""
    chart = (CHART / "templates" / "settings.yaml").read_text()
    services = read_yaml(COMPOSE / "compose.app.yaml")["services"]

    assert '" "GALATEA_SQL_HOST"' not in chart
    assert {name for name, each in services.items() if "GALATEA_SQL_HOST" in each.get("environment", {})} == {"sql"}


def test_every_component_has_its_place_in_each_of_them() -> None:
    wanted = {str(each) for each in Runnable}
    services = read_yaml(COMPOSE / "compose.app.yaml")["services"]
    [wants] = re.findall(r"^Wants=(.*)$", (UNITS / "galatea.target").read_text(), re.MULTILINE)

    assert {name for name, service in services.items() if service["command"] == ["run", name]} == wanted
    assert set(re.findall(r"galatea@(\w+)\.service", wants)) == wanted
    assert set(read_yaml(CHART / "values.yaml")["components"]) == wanted


def test_every_scheduled_command_exists_and_is_scheduled_in_each_of_them() -> None:
    timers = {path.stem.partition("@")[2] for path in UNITS.glob("galatea-job@*.timer")}

    assert timers == set(read_yaml(CHART / "values.yaml")["jobs"]["schedules"])
    assert {each.replace("-", "_") for each in timers} <= set(COMMANDS)


def test_no_process_in_a_container_has_rights_that_it_does_not_need() -> None:
    for name, service in read_yaml(COMPOSE / "compose.app.yaml")["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["user"] == "10001:10001", name
        assert all(port.startswith("${GALATEA_PUBLISH:-127.0.0.1}:") for port in service.get("ports", ())), name


def test_several_containers_of_a_service_get_in_each_others_way_nowhere() -> None:
    services = read_yaml(COMPOSE / "compose.app.yaml")["services"]

    for name, service in services.items():
        assert not service.keys() & {"container_name", "hostname", "network_mode"}, name
        assert "/var/lib/galatea/run:mode=1777" in service["tmpfs"], name  # whether this container is ready
    assert services["api"]["ports"] == ["${GALATEA_PUBLISH:-127.0.0.1}:${GALATEA_PUBLISH_API:-8000}:8000"]


def test_the_values_of_the_chart_satisfy_their_schema() -> None:
    jsonschema.validate(read_yaml(CHART / "values.yaml"), json.loads((CHART / "values.schema.json").read_text()))


@pytest.mark.parametrize(
    ("component", "replicas", "is_accepted"),
    [
        ("api", 3, True),
        ("api", 0, False),
        ("speed", 2, True),
        ("alerts", 2, False),
        ("sql", 0, True),
        ("sql", 2, False),
    ],
)
def test_some_components_may_have_several_pods_or_none(component: str, replicas: int, is_accepted: bool) -> None:  # noqa: FBT001 - a row of a table
    values = read_yaml(CHART / "values.yaml")
    values["components"][component]["replicas"] = replicas
    schema = jsonschema.Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))

    assert schema.is_valid(values) == is_accepted


OPTIONS = {"GALATEA_KAFKA_CLIENT_OPTIONS"}
"""Secrets may be among them."""
SECRETS = sorted(
    OPTIONS
    | {f"GALATEA_{name.upper()}" for name, field in Settings.catalogue().items() if field.annotation is SecretStr}
)


def test_every_other_setting_is_one_of_the_chart() -> None:
    fixed = {"GALATEA_HOME", "GALATEA_API_PORT", "GALATEA_SQL_PORT"}
    others = {f"GALATEA_{name.upper()}" for name in Settings.catalogue()} - fixed - {*SECRETS}
    values = {**read_yaml(CHART / "values.yaml"), "settings": dict.fromkeys(others, "a")}

    jsonschema.validate(values, json.loads((CHART / "values.schema.json").read_text()))


@pytest.mark.parametrize("place", ["migrate", "jobs", *Runnable])
@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [("GALATEA_CASSANDRA_USER", True), ("GALATEA_KAFKA_PASSWORD", False), ("GALATEA_TLS_CERTIFICATE_FILE", False)],
)
def test_each_process_can_have_a_login_of_its_own_in_the_chart(place: str, name: str, is_accepted: bool) -> None:  # noqa: FBT001 - a row of a table
    values = read_yaml(CHART / "values.yaml")
    of_its_own = values[place] if place in values else values["components"][place]
    of_its_own |= {"secretName": "a", "settings": {name: "a"}}
    schema = jsonschema.Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))

    assert schema.is_valid(values) == is_accepted


def test_each_service_can_have_a_login_of_its_own_with_compose() -> None:
    common = {"path": "${GALATEA_ENV_FILE:-galatea.env}"}

    for name, service in read_yaml(COMPOSE / "compose.app.yaml")["services"].items():
        assert service["env_file"] == [common, {"path": f"{common['path']}.{name}", "required": False}]


def test_a_container_that_is_started_again_is_not_ready_before_its_process_says_so(tmp_path: Path) -> None:
    """The folder of these files survives a restart of the container."""
    [found] = re.findall(
        r"^ +command: (\[sh, .*\])$", (CHART / "templates" / "components.yaml").read_text(), re.MULTILINE
    )
    command = [each.replace("/var/lib/galatea/run", str(tmp_path)) for each in yaml.safe_load(found)]
    (tmp_path / "api.ready").write_text("1")
    (tmp_path / "recomputes.json").write_text("[]")
    (tmp_path / "galatea").write_text(f"#!/bin/sh\necho $$ $@; ls {tmp_path}\n")
    (tmp_path / "galatea").chmod(0o700)

    with subprocess.Popen(
        [*command, "run", "api"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, stdout=subprocess.PIPE, text=True
    ) as process:
        shown, _ = process.communicate()

    assert shown.splitlines() == [f"{process.pid} run api", "galatea", "recomputes.json"]


def test_only_migrate_has_the_login_that_creates_tables() -> None:
    text = (CHART / "templates" / "components.yaml").read_text()
    own = dict(re.findall(r'\$(\w+) := dict "root" \$root .*"own" \$([\w.]+)', text))
    included = re.findall(r"args: \[(\w+).*\n\s+{{- include \"galatea.container\" \$(\w+)", text)

    assert {process: own[of] for process, of in included} == {"migrate": "root.Values.migrate", "run": "own"}


def test_a_file_of_an_own_secret_takes_the_place_of_a_common_one() -> None:
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()

    assert "compact (list .root.Values.secretName .own.secretName)" in helpers  # of a projected volume the last counts


def test_no_template_of_the_chart_trusts_any_certificate() -> None:
    assert not [path for path in (CHART / "templates").iterdir() if "insecureSkipVerify" in path.read_text()]


@pytest.mark.parametrize("settings", [*({each: "a"} for each in SECRETS), {"HOME": "a"}, {"GALATEA_API_PORT": 8000}])
def test_the_chart_refuses_secrets_among_the_settings_and_what_is_no_setting(settings: dict[str, object]) -> None:
    values = {**read_yaml(CHART / "values.yaml"), "settings": settings}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, json.loads((CHART / "values.schema.json").read_text()))


def test_the_image_has_every_package_of_the_wheel() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    copied = re.findall(r"^COPY (\w+) \1$", (DEPLOY / "image" / "Containerfile").read_text(), re.MULTILINE)

    assert sorted(copied) == sorted(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])


def test_the_version_of_the_chart_is_that_of_the_package() -> None:
    chart = read_yaml(CHART / "Chart.yaml")

    assert {chart["version"], chart["appVersion"]} == {bill_of_materials()["metadata"]["component"]["version"]}


def test_the_bill_of_materials_names_packages_and_jars_once_each() -> None:
    components = bill_of_materials()["components"]
    purls = [each["purl"] for each in components]

    assert len(purls) == len(set(purls))
    assert {each["hashes"][0]["content"] for each in components if "hashes" in each} == {
        jar.sha256 for part in ("spark", "s3") for jar in locked_jars(part)
    }
    assert any(purl.startswith("pkg:pypi/deltalake@") for purl in purls)


def test_uv_is_fetched_by_hash_in_the_one_version_of_its_file() -> None:
    pinned, *hashes = (DEPLOY / "uv.txt").read_text().partition("\nuv==")[2].replace("\\\n", " ").split()
    makefile, containerfile = DEPLOY.parent / "Makefile", DEPLOY / "image" / "Containerfile"

    assert re.fullmatch(r"[0-9.]+", pinned)
    assert len(set(hashes)) == len(hashes) > 0
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
    for file in (makefile, containerfile):
        text = file.read_text()

        assert re.search(r"pip install .*\\\n\s+--require-hashes --no-deps --only-binary :all: -r \S*/uv\.txt", text)
        assert "uv==$" not in text
        assert pinned not in text


def test_make_knows_the_version_of_uv() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "-f", "Makefile", "-f", "-", "shown"],  # noqa: S607 - whichever the machine has
        cwd=DEPLOY.parent,
        input="shown:\n\t@echo $(OWN_UV)\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert re.search(r"/galatea/uv-[0-9.]+/bin/uv$", shown.strip())


def script_of(service: str, folder: Path) -> str:
    """The command that Compose gives the container, with its data in this folder."""
    command = read_yaml(COMPOSE / "compose.yaml")["services"][service]["command"]
    text = str(command[2]).replace("$$", "$").replace("sleep 10", "exit 9")
    return text.replace("/var/lib/kafka/data", str(folder)).replace("/var/lib/cassandra", str(folder))


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands: `df` says how much is free, and the entry point of Cassandra's image says its arguments."""
    for name, text in {
        "df": "printf 'head\n/dev/x 1 1 %s 1%% /\n' $FREE",
        "docker-entrypoint.sh": "echo started $@",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CASSANDRA_CONF", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("service", ["kafka", "cassandra"])
def test_a_database_of_compose_is_not_started_on_a_full_disk(
    service: str, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FREE", "255")

    done = subprocess.run(
        ["/bin/bash", "-c", script_of(service, commands)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (9, "")
    assert f"less than 256 MB are free on the volume {service}" in done.stderr


def test_cassandra_of_compose_acknowledges_what_is_on_disk(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FREE", "256")
    file = commands / "cassandra.yaml"
    usual = "cluster_name: 'x'\ncommitlog_sync: periodic\ncommitlog_sync_period: 10000ms\ndisk_failure_policy: stop\n"
    file.write_text(
        f"{usual}commit_failure_policy: stop\n# commitlog_disk_access_mode: legacy\ncommitlog_segment_size: 32MiB"
    )

    for _ in range(2):  # a container that is started again keeps its files
        done = subprocess.run(
            ["/bin/bash", "-c", script_of("cassandra", commands)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "started cassandra -f\n"

    assert yaml.safe_load(file.read_text()) == {
        "cluster_name": "x",
        "commitlog_segment_size": "32MiB",
        "commitlog_sync": "batch",
        "commit_failure_policy": "die",
        "disk_failure_policy": "die",
        "commitlog_disk_access_mode": "mmap",
    }
    assert file.read_text().count("commitlog_sync:") == 1


def test_kafka_of_compose_flushes_each_record() -> None:
    assert (
        read_yaml(COMPOSE / "compose.yaml")["services"]["kafka"]["environment"]["KAFKA_LOG_FLUSH_INTERVAL_MESSAGES"]
        == "1"
    )
