"""The image, built on a base of Debian packages: what it holds, which rights it runs with, and that it answers.

Needs buildah, podman, runc and mmdebstrap, and root, whose containers need no daemon.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

from deploy.image.sbom import PACKAGE
from deploy.jars import locked_jars
from deploy.local.ports import free_ports
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of
from tests.system.deployments.test_secured_stack import receipt

pytestmark = pytest.mark.nightly

SOURCES = Path(__file__).parents[3]
PACKAGES = "ca-certificates,python3,python3-venv,tzdata"
CERTIFICATES = "/etc/ssl/certs"
CONTAINER = (
    *("--runtime", "runc", "--network", "host", "--ulimit", "nofile=1024:2048", "--ulimit", "nproc=1000:2000"),
    *("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),  # noqa: S108 - its own
)
USER = 10001
KEY_IN_CONTAINER = "/run/galatea.key"
COUNT = 12
STORE = "1"
"""Of the receipts. It is not registered, so that only a question that names it is about it."""


def done(*words: str) -> str:
    """Run a command to its end; gives back what it printed."""
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout


@dataclass(frozen=True)
class Image:
    """A built image. `storage`: what tells podman and buildah where it is."""

    storage: tuple[str, ...]
    name: str

    def podman(self, *words: str) -> str:
        return done("podman", *self.storage, "--cgroup-manager", "cgroupfs", *words)

    def run(self, *words: str, options: tuple[str, ...] = ()) -> str:
        """Run a container to its end, without rights. `words`: options and the command behind the image's name."""
        return self.podman("run", "--rm", *CONTAINER, *options, self.name, *words)

    def shell(self, script: str) -> str:
        return self.run("-c", script, options=("--entrypoint", "sh")).strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    for tool in ("buildah", "podman", "runc", "mmdebstrap"):
        assert shutil.which(tool), f"install {tool}: it is a package of Debian"
    folder = tmp_path_factory.mktemp("image")
    storage = ("--root", f"{folder}/store", "--runroot", f"{folder}/run", "--storage-driver", "overlay")
    base = folder / "base.tar"
    done("mmdebstrap", "--variant=minbase", "--mode=root", f"--include={PACKAGES}", "bookworm", str(base))
    done("podman", *storage, "import", str(base), "localhost/stand-in/python:slim")
    base.unlink()
    done(
        *("buildah", *storage, "bud", "--isolation", "chroot", "--network", "host"),
        *("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"),
        *("--build-arg", "BASE=localhost/stand-in/python:slim", "--file", "deploy/image/Containerfile"),
        *("--tag", "galatea:test", str(SOURCES)),
    )
    yield Image(storage, "localhost/galatea:test")
    if (folder / "store" / "overlay").is_mount():  # podman mounts it on itself, and does not always undo that
        done("umount", f"{folder}/store/overlay")
    shutil.rmtree(folder)


def test_image_runs_unprivileged_on_a_read_only_file_system(image: Image) -> None:
    assert image.run("--version").split()[-1] == version(PACKAGE)
    assert image.shell("id -u; id -g") == "10001\n10001"
    assert image.shell("grep CapEff /proc/self/status").split()[-1] == "0" * 16
    assert image.shell("touch /usr/x 2>&1 || echo refused").endswith("refused")
    assert image.shell("touch /tmp/x $GALATEA_HOME/x && stat -c %a $GALATEA_HOME") == "700"


def test_bill_of_materials_lists_the_contents_of_the_image(image: Image) -> None:
    bill = json.loads(image.shell("cat /opt/galatea/sbom.cdx.json"))
    found = {each["purl"].partition(":")[2].partition("/")[0] for each in bill["components"]}
    jars = {each["name"]: each for each in bill["components"] if each["purl"].startswith("pkg:maven/")}
    hashes = image.shell("find $GALATEA_CACHE_DIR -name '*.jar' -exec sha256sum {} +")

    assert bill["metadata"]["component"]["version"] == version(PACKAGE)
    assert found >= {"pypi", "maven", "deb"}
    assert set(jars) == {jar.artifact for part in ("spark", "s3") for jar in locked_jars(part)}
    assert {each["hashes"][0]["content"] for each in jars.values()} <= {line[:64] for line in hashes.splitlines()}


def test_image_contains_only_the_sources_of_the_clone(image: Image) -> None:
    own = image.shell("cat /opt/galatea/lib/python3*/site-packages/deploy/settings.py")

    assert own == (SOURCES / "deploy" / "settings.py").read_text().strip()
    assert image.shell("find / -xdev \\( -name .git -o -name .venv -o -name '*.key' \\) 2>/dev/null | wc -l") == "0"


def test_a_rest_interface_in_a_container_answers_as_the_one_of_the_stack(
    image: Image, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings, environment = settings_of(tmp_path_factory.mktemp("beside") / "home")
    stack, [port] = Stack(settings, environment), free_ports(1)
    try:
        stack.run("up", "--detach", "--without-airflow")
        stack.ingest("pos_transactions", map(receipt, range(COUNT)))
        stack.galatea("rebuild", "--wait")
        expected = stack.get("/v1/metrics/total_transactions_count", store=STORE, **around_now(), grain="total")
        options = {
            "GALATEA_KAFKA_BOOTSTRAP": f"127.0.0.1:{environment['GALATEA_KAFKA_PORT']}",
            "GALATEA_CASSANDRA_CONTACT_POINTS": "127.0.0.1",
            "GALATEA_CASSANDRA_PORT": environment["GALATEA_CASSANDRA_PORT"],
            "GALATEA_EPOCH_SECONDS": environment["GALATEA_EPOCH_SECONDS"],
            "GALATEA_API_PORT": str(port),
            "GALATEA_SECRETS_KEY_FILE": KEY_IN_CONTAINER,
        }
        key = tmp_path_factory.mktemp("key") / "secrets.key"
        shutil.copy(settings.home / "secrets.key", key)
        os.chown(key, USER, USER)
        container = image.podman(
            *("run", "--detach", *CONTAINER, "--volume", f"{key}:{KEY_IN_CONTAINER}:ro"),
            *(word for name, value in options.items() for word in ("--env", f"{name}={value}")),
            *(image.name, "run", "api"),
        ).strip()
        try:
            answered = answer_of(image, container, port)
        finally:
            image.podman("rm", "--force", container)
    finally:
        stack.run("down")

    assert [point["value"] for series in answered["series"] for point in series["points"]] == [COUNT]
    assert answered["series"] == expected["series"]


def answer_of(image: Image, container: str, port: int) -> dict[str, list[dict[str, list[dict[str, int]]]]]:
    """What it answers once it says that it is healthy."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    is_healthy = ("exec", container, "sh", "-c", "ls $GALATEA_HOME/run/*.ready >/dev/null 2>&1 && echo healthy || true")
    while "healthy" not in image.podman(*is_healthy):
        assert time.monotonic() < deadline, image.podman("logs", container)
        time.sleep(1)
    key = image.podman("exec", container, "sh", "-c", "cat $GALATEA_HOME/operator.key")
    got = httpx.get(
        f"http://127.0.0.1:{port}/v1/metrics/total_transactions_count",
        params={"store": STORE, **around_now(), "grain": "total"},
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
        trust_env=False,
    )
    assert got.status_code == 200, got.text
    body: dict[str, list[dict[str, list[dict[str, int]]]]] = got.json()
    return body
