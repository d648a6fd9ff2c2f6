"""Galatea's own processes as components: each is `python -m deploy.services.<name>`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.local.component import Component
from deploy.local.nodes import LOOPBACK
from deploy.local.room import refuse_full

if TYPE_CHECKING:
    from deploy.settings import Settings


def layer(name: str, settings: "Settings") -> Component:
    """`archive`, `speed`, `alerts` or `dispatcher`: serves when it has written its pid into `run/<name>.ready`."""
    ready = settings.home / "run" / f"{name}.ready"
    port = {
        "archive": settings.archive_metrics_port,
        "speed": settings.speed_metrics_port,
        "alerts": settings.alerts_metrics_port,
        "dispatcher": settings.dispatcher_metrics_port,
    }[name]
    return Component(
        name=name,
        command=lambda: _command(name),
        serves=ready.exists,
        ports=_chosen(port, f"GALATEA_{name.upper()}_METRICS_PORT"),
        environment=settings.environment(),
        prepare=lambda: _prepare(ready, (settings.home, Path(settings.master_uri), Path(settings.checkpoint_uri))),
        stage=1,
        grace_seconds=15,  # a dispatcher gives calls that are under way ten seconds
    )


def api(settings: "Settings") -> Component:
    """The REST interface."""
    url = f"http://{LOOPBACK}:{settings.api_port}"
    return Component(
        name="api",
        command=lambda: _command("api"),
        serves=lambda: _answers(f"{url}/healthz"),
        where={"url": url},
        ports={settings.api_port: "GALATEA_API_PORT"} | _chosen(settings.api_metrics_port, "GALATEA_API_METRICS_PORT"),
        stage=1,
        environment=settings.environment(),
        grace_seconds=10,
    )


def _chosen(port: int, setting: str) -> dict[int, str]:
    """Port 0 is none that could be taken already."""
    return {port: setting} if port else {}


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", f"deploy.services.{name}"]


def _prepare(ready: Path, folders: Sequence[Path]) -> None:
    """Folders that are not here, as those of an object store, are passed by."""
    ready.unlink(missing_ok=True)
    for folder in folders:
        refuse_full(folder)


def _answers(url: str) -> bool:
    import httpx

    try:
        return httpx.get(url, timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False
