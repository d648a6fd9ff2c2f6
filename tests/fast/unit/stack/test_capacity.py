"""A plan grows with what is sent, and the page about it shows what the command prints."""

import re
import shlex
from dataclasses import astuple, replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from deploy.capacity import LEAST_CORES, LEAST_PARTITIONS, Workload, plan_capacity
from galatea.cli.main import app

PAGE = Path("docs/how-to/plan-capacity.md")
workloads = st.builds(
    Workload,
    stores=st.integers(1, 10_000),
    receipts=st.floats(0, 5_000),
    lines=st.floats(1, 50),
    sensor_events=st.floats(0, 50_000),
    peak=st.floats(1, 10),
    years=st.floats(0, 10),
    copies=st.integers(1, 3),
)


@given(workloads, st.sampled_from(["stores", "receipts", "lines", "sensor_events", "peak", "kafka_days", "years"]))
def test_twice_of_anything_never_needs_less(of: Workload, name: str) -> None:
    one, twice = plan_capacity(of), plan_capacity(replace(of, **{name: 2 * getattr(of, name)}))

    less = [
        number
        for number, (before, after) in enumerate(zip(astuple(one), astuple(twice), strict=True))
        if after < before
    ]
    assert less in ([], [8])  # a rebuild may be quicker, with more cores


def test_a_small_shop_needs_one_small_machine() -> None:
    plan = plan_capacity(Workload(stores=1, receipts=300))

    assert (plan.cores, plan.partitions) == (LEAST_CORES, LEAST_PARTITIONS)
    assert plan.master_gb < 1


def test_copies_need_as_many_disks_but_of_the_master_dataset() -> None:
    one, three = (plan_capacity(Workload(stores=50, receipts=400, copies=copies)) for copies in (1, 3))

    assert (three.kafka_gb, three.cassandra_gb) == pytest.approx((3 * one.kafka_gb, 3 * one.cassandra_gb))
    assert three.master_gb == one.master_gb


def test_the_page_shows_what_the_command_prints() -> None:
    [block] = re.findall(r"```console\n\$ galatea (plan-capacity .*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    command, printed = block

    result = CliRunner().invoke(app, shlex.split(command))

    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if line.strip()] == [
        line.split() for line in printed.splitlines() if line.strip()
    ]


ABSURD = {
    "--stores": ("0", "-3", "1" + "0" * 30, "many"),
    "--receipts": ("-1", "1e30", "inf", "nan", "x"),
    "--lines": ("0", "-8", "1e9", "nan"),
    "--sensor-events": ("-1", "1e30", "inf", "nan"),
    "--peak": ("0.5", "25", "inf", "nan"),
    "--kafka-days": ("7", "-1", "1" + "0" * 12, "1.5"),
    "--years": ("-1", "101", "inf", "nan"),
    "--copies": ("0", "4"),
}


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, values in ABSURD.items() for value in values]
)
def test_a_number_that_no_deployment_has_is_refused_by_the_name_of_its_option(option: str, value: str) -> None:
    usual = {"--stores": "10", "--receipts": "100"} | {option: value}
    result = CliRunner().invoke(app, ["plan-capacity", *(word for pair in usual.items() for word in pair)])

    assert result.exit_code == 2
    assert option in result.output
    shown = " ".join(result.output.replace("│", " ").split())  # out of its box
    assert any(said in shown for said in ("Input should be", "is not a number", "is not a valid"))


def test_the_largest_workload_is_planned_in_finite_numbers() -> None:
    most = ("--stores", "1000000", "--receipts", "1000000", "--lines", "1000", "--sensor-events", "100000000")
    result = CliRunner().invoke(app, ["plan-capacity", *most, "--peak", "24", "--years", "100", "--json"])

    assert all(0 < value < 1e30 for value in orjson.loads(result.stdout)["plan"].values())


def test_json_has_the_workload_and_the_plan() -> None:
    result = CliRunner().invoke(app, ["plan-capacity", "--stores", "10", "--receipts", "100", "--json"])

    said = orjson.loads(result.stdout)
    assert (said["workload"]["stores"], said["plan"]["cores"]) == (10, LEAST_CORES)
