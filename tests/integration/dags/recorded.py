"""A command `galatea` that computes nothing: it writes down how it was called, and answers as the real one does.

`play.json` beside its record may say how it ends: {"VERB": {"exit": 1, "answer": {...}}}.
"""

import json
import os
import sys
from pathlib import Path

AFTER = {"plan": "planned", "compute": "computed", "publish": "published", "rebuild": "published"}
SALES = {"days": 2, "blocks": 900, "events": 12345, "seconds": 4.2, "why": {"new events": 2}}


def main(folder: Path) -> None:
    words = sys.argv[1:]
    verb = words[1] if words[0] == "recompute" else words[0]
    given = {name: value for name, value in os.environ.items() if name.startswith(("GALATEA_", "AIRFLOW_CTX_"))}
    with (folder / "calls.jsonl").open("a") as record:
        record.write(json.dumps({"words": words, "variables": given}) + "\n")
    played = json.loads((folder / "play.json").read_text()).get(verb, {})
    sys.stderr.write(f"  {verb}: 1/2\n  {verb}: 2/2\n")
    found = {"id": "the recompute", "state": AFTER.get(verb, "done"), "publication": 7, "cut": "2026-11-21T09:00:00Z"}
    answer = found | ({} if verb == "plan" else {"views": {"sales": SALES}, "partitions": [{}]})
    sys.stdout.write(json.dumps(answer | played.get("answer", {}), indent=2))
    sys.exit(played.get("exit", 0))
