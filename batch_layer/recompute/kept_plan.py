"""A plan as it is kept, so that a recompute that was interrupted goes on with it and not with another one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from batch_layer.recompute.plan import Plan
from batch_layer.recompute.touched import Master
from views.control.publication import Pointer
from views.core.view import View


def kept(plan: Plan, run: str) -> dict[str, Any]:
    """The plan as JSON. `run`: under which name its cells are written."""
    base = asdict(plan.base) | {"definitions": dict(plan.base.definitions)}
    return {
        "run": run,
        "base": base,
        "cut": plan.cut,
        "generation": plan.generation,
        "work": {view.name: sorted(days) for view, days in plan.work},
        "whys": dict(plan.whys),
        "masters": {topic: [master.path, master.version] for topic, master in plan.masters.items()},
        "master_versions": dict(plan.master_versions),
        "definitions": dict(plan.definitions),
        "alarms": list(plan.alarms),
        "read_at": plan.read_at,
    }


def read_plan(told: Mapping[str, Any], views: Sequence[View]) -> Plan:
    """The inverse, among these views. KeyError if one of them is gone: definitions are compared before."""
    by_name = {view.name: view for view in views}
    base = told["base"] | {"cut": datetime.fromisoformat(told["base"]["cut"])}
    return Plan(
        base=Pointer(**base),
        cut=datetime.fromisoformat(told["cut"]),
        generation=told["generation"],
        work=[(by_name[name], set(map(date.fromisoformat, days))) for name, days in told["work"].items()],
        masters={topic: Master(path, version) for topic, (path, version) in told["masters"].items()},
        master_versions=told["master_versions"],
        definitions=told["definitions"],
        alarms=tuple(told["alarms"]),
        whys=told["whys"],
        read_at=datetime.fromisoformat(told["read_at"]) if told["read_at"] else None,
    )
