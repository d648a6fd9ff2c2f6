"""Helm renders objects that Kubernetes accepts, and systemd accepts the units."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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
