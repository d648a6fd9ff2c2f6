"""The alarms that stand, as findings of `galatea doctor`: asked of the REST interface, if it runs."""

from typing import TYPE_CHECKING

import httpx

from deploy.local.finding import Finding
from deploy.local.nodes import LOOPBACK
from deploy.local.records import Records

if TYPE_CHECKING:
    from deploy.settings import Settings

TIMEOUT_SECONDS = 10.0


def alarmed(settings: "Settings") -> list[Finding]:
    """One finding per alarm, or one that says that there is none. Nothing is known of what does not run."""
    if Records(settings.home).pid("api") is None:
        return []
    try:
        answer = httpx.get(
            f"http://{LOOPBACK}:{settings.api_port}/v1/freshness", timeout=TIMEOUT_SECONDS, trust_env=False
        ).raise_for_status()
    except httpx.HTTPError as error:
        return [Finding("alarms", ok=False, found=f"not known: {error}", do="galatea status")]
    standing = [
        Finding(each["name"], ok=False, found=f"since {each['since']}: {each['meaning']}", do=each["do"])
        for each in answer.json()["alarms"]
    ]
    return standing or [Finding("alarms", ok=True, found="none")]
