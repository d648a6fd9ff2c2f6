"""Galatea's own processes as components: each is `python -m deploy.process.<name>`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from deploy.stack.component import Component

if TYPE_CHECKING:
    from deploy.settings import Settings


def layer(name: str, settings: "Settings") -> Component:
    """`archive` or `speed`: serves when it has written its pid into `run/<name>.ready`."""
    ready = settings.home / "run" / f"{name}.ready"
    return Component(
        name=name,
        command=lambda: _command(name),
        serves=ready.exists,
        environment=settings.environment(),
        prepare=lambda: _forget(ready),
        stage=1,
        grace_seconds=10,
    )


def api(settings: "Settings") -> Component:
    """The REST interface."""
    url = f"http://127.0.0.1:{settings.api_port}"
    return Component(
        name="api",
        command=lambda: _command("api"),
        serves=lambda: _answers(f"{url}/healthz"),
        where={"url": url},
        ports={settings.api_port: "GALATEA_API_PORT"},
        stage=1,
        environment=settings.environment(),
        grace_seconds=10,
    )


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", f"deploy.process.{name}"]


def _forget(ready: Path) -> None:
    ready.unlink(missing_ok=True)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False
