"""Helm renders objects that Kubernetes accepts, and systemd accepts the units."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from deploy.settings import Settings
from galatea.cli.run import Runnable
from tests.fast.unit.packaging.test_manifests import CHART, UNITS

pytestmark = pytest.mark.nightly

KUBERNETES = "1.34"
VALUES = {
    "secretName": "galatea-files",
    "settings": {
        "GALATEA_TLS_CERTIFICATE_FILE": "/run/galatea/tls.crt",
        "GALATEA_CHECKPOINT_URI": "s3://lake/checkpoints",
        "GALATEA_MASTER_URI": "s3://lake/master",
    },
    "components": {"api": {"replicas": 3}, "archive": {"replicas": 2}, "speed": {"replicas": 2}},
    "metrics": {"enabled": True, "serviceMonitor": {"enabled": True}},
    "persistence": {"storageClass": "shared"},
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"shops": "yes"}}}]},
}
INSTANCES = {"galatea@": ["api", "speed"], "galatea-job@": ["rebuild", "export", "compact", "gc"]}


def tool(name: str, how: str) -> str:
    found = shutil.which(name)
    assert found, f"install {name}: {how}"
    return found


def run(*words: str, given: str = "") -> str:
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("values", [{}, VALUES], ids=["defaults", "everything"])
def test_kubernetes_accepts_what_helm_renders(values: dict[str, Any], tmp_path: Path) -> None:
    helm = tool("helm", "go install helm.sh/helm/v3/cmd/helm@latest")
    uv = tool("uvx", "pip install uv")
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    of_values = ("--values", str(tmp_path / "values.yaml"))

    run(helm, "lint", "--strict", str(CHART), *of_values)
    rendered = run(helm, "template", "shops", str(CHART), "--kube-version", KUBERNETES, *of_values)

    objects = [each for each in yaml.safe_load_all(rendered) if each]
    known = [each for each in objects if each["kind"] != "ServiceMonitor"]  # of the Prometheus operator
    assert {each["kind"] for each in known} >= {
        "Deployment",
        "CronJob",
        "Service",
        "PodDisruptionBudget",
        "NetworkPolicy",
    }
    pods = {each["metadata"]["name"].removeprefix("shops-"): each for each in known if each["kind"] == "Deployment"}
    wanted = {name: own["replicas"] for name, own in values.get("components", {}).items()}
    assert {name: each["spec"]["replicas"] for name, each in pods.items()} == dict.fromkeys(Runnable, 1) | wanted
    (tmp_path / "rendered.yaml").write_text(yaml.safe_dump_all(known))
    run(uv, "kubernetes-validate", "--strict", "-k", KUBERNETES, str(tmp_path / "rendered.yaml"))


@pytest.mark.parametrize("uri", ["GALATEA_CHECKPOINT_URI", "GALATEA_MASTER_URI"])
def test_several_archives_need_both_roots_on_an_object_store(uri: str, tmp_path: Path) -> None:
    helm = tool("helm", "go install helm.sh/helm/v3/cmd/helm@latest")
    values = {"secretName": "x", "settings": {uri: "s3://lake/x"}, "components": {"archive": {"replicas": 2}}}
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))

    words = [helm, "template", "x", str(CHART), "--kube-version", KUBERNETES, "--values", str(tmp_path / "values.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "components.archive.replicas: several need GALATEA_MASTER_URI and GALATEA_CHECKPOINT_URI" in done.stderr


BEHIND_AN_INGRESS = {"settings": {"GALATEA_API_PROXIES": "10.0.0.0/8"}, "components": {"sql": {"replicas": 0}}}
WITH_A_CERTIFICATE = {
    "secretName": "galatea-files",
    "settings": {
        "GALATEA_TLS_CERTIFICATE_FILE": "/run/galatea/tls.crt",
        "GALATEA_TLS_KEY_FILE": "/run/galatea/tls.key",
        "GALATEA_SQL_HOST": "::",
    },
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"shops": "yes"}}}]},
}


def rendered(values: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """The objects that Helm renders as the release `shops`."""
    helm, file = tool("helm", "go install helm.sh/helm/v3/cmd/helm@latest"), folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    text = run(helm, "template", "shops", str(CHART), "--kube-version", KUBERNETES, "--values", str(file))
    return [each for each in yaml.safe_load_all(text) if each]


def environments(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, str]]]:
    """The variables of each container of a pod that is started, by the container's name."""
    [common] = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
    for each in objects:
        spec = each.get("spec", {})
        pod = {"Deployment": spec, "CronJob": spec.get("jobTemplate", {}).get("spec")}.get(each["kind"])
        if pod is None or spec.get("replicas") == 0:
            continue
        containers = pod["template"]["spec"]
        for container in (*containers.get("initContainers", ()), *containers["containers"]):
            own = {variable["name"]: variable["value"] for variable in container.get("env", ())}
            yield container["name"], {**common, **own}


@pytest.mark.parametrize("values", [BEHIND_AN_INGRESS, WITH_A_CERTIFICATE], ids=["ingress", "certificate"])
def test_every_process_of_the_chart_can_use_its_settings(
    values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    found = {}
    for name, variables in environments(rendered(values, tmp_path)):
        with monkeypatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            found[name] = Settings()

    assert found.keys() >= {"migrate", "api", "speed", "rebuild", "send-reports"}
    hosts = {name: each.sql.host for name, each in found.items() if each.sql.host != "127.0.0.1"}
    assert hosts == ({} if values is BEHIND_AN_INGRESS else {"sql": "::"})


@pytest.mark.parametrize(
    ("values", "scheme"), [(BEHIND_AN_INGRESS, "http"), (WITH_A_CERTIFICATE, "https")], ids=["ingress", "certificate"]
)
def test_jobs_ask_the_service_of_rest_which_is_served_under_its_name_and_admits_them(
    values: dict[str, Any], scheme: str, tmp_path: Path
) -> None:
    objects = rendered(values, tmp_path)
    jobs = dict(environments(objects))["send-reports"]
    [service] = [each for each in objects if each["kind"] == "Service" and each["metadata"]["name"] == "shops-api"]
    [policy] = [each for each in objects if each["kind"] == "NetworkPolicy"]
    admitted = [
        each["podSelector"].get("matchLabels", {})
        for each in policy["spec"]["ingress"][0]["from"]
        if "podSelector" in each
    ]
    [job] = [each for each in objects if each["metadata"]["name"] == "shops-send-reports"]
    labels = job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]

    url = urlsplit(jobs["GALATEA_API_URL"])
    assert (url.scheme, url.hostname, url.port) == (scheme, "shops-api", service["spec"]["ports"][0]["port"])
    assert url.hostname in jobs["GALATEA_API_HOSTS"].split(",")
    assert any(selector.items() <= labels.items() for selector in admitted)


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """It says what is wrong and still exits with 0. The command that they start is not installed here."""
    analyze = tool("systemd-analyze", "apt install systemd")
    for path in UNITS.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/galatea/bin/galatea", "/bin/true"))
    for template, instances in INSTANCES.items():
        for instance in instances:
            shutil.copy(tmp_path / f"{template}.service", tmp_path / f"{template}{instance}.service")
    units = [path for path in tmp_path.iterdir() if not path.stem.endswith("@")]
    assert len(units) > 10

    assert run(analyze, "verify", "--man=no", *map(str, units)) == ""
