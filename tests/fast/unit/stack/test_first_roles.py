"""The first start of a secured ring: the delivered user goes, and roles that somebody else has made end the start."""

import re
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from deploy import cassandra
from deploy.cassandra import Address, Login
from deploy.local import rights
from deploy.local.rights import create_operator
from deploy.local.security import PROCESSES
from master_dataset.errors import CassandraAccessError, OperatorError
from tests.support.cassandra_rows import Result

DELIVERED = Login("cassandra", "cassandra")
RING = Address(("127.0.0.1",), 9042, login=Login("operator", "of this home"))


class Ring:
    """Roles of Cassandra: name to what it can do. It is the session of whoever it lets in, too."""

    def __init__(self) -> None:
        self.roles: dict[str, dict[str, Any]] = {"cassandra": self.role("cassandra", is_superuser=True)}
        self.members: list[SimpleNamespace] = []
        self.cluster = SimpleNamespace(shutdown=lambda: None)
        self.consistencies: list[str] = []

    @staticmethod
    def role(password: str, *, is_superuser: bool = False) -> dict[str, Any]:
        return {"password": password, "can_login": True, "is_superuser": is_superuser}

    def connect(self, address: Address) -> "Ring":
        assert address.login is not None
        found = self.roles.get(address.login.user)
        if found is None or (found["password"], found["can_login"]) != (address.login.password, True):
            raise CassandraAccessError("rejected", do="")
        self.consistencies.append(address.consistency)
        return self

    def execute(self, cql: str, values: Sequence[Any] = ()) -> Result:
        if "FROM system_auth.role_members" in cql:
            return Result(self.members)
        if cql.startswith("SELECT"):
            rows = [SimpleNamespace(role=name, **role) for name, role in self.roles.items()]
            return Result(row for row in rows if not values or row.role == values[0])
        if found := re.match(r'(CREATE|ALTER|DROP) ROLE (?:IF EXISTS )?"?(\w+)', cql):
            kind, name = found.groups()
            if kind == "DROP":
                self.roles.pop(name, None)
                return Result()
            assert (kind == "CREATE") == (name not in self.roles)
            role = self.roles.setdefault(name, {"can_login": False, "is_superuser": False})
            role["password"] = values[0]
            options = {"LOGIN": "can_login", "SUPERUSER": "is_superuser"}
            role.update({options[option]: word == "true" for option, word in re.findall(r"(\w+) = (true|false)", cql)})
        return Result()


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    found = Ring()
    monkeypatch.setattr(cassandra, "connect", found.connect)
    monkeypatch.setattr(rights, "CACHED_SECONDS", 0)
    return found


def test_the_operator_is_the_only_role_that_a_new_ring_begins_with(ring: Ring) -> None:
    create_operator(RING, DELIVERED, 1)
    create_operator(RING, DELIVERED, 1)

    assert ring.roles == {"operator": Ring.role("of this home", is_superuser=True)}


def test_roles_of_a_new_ring_are_read_from_all_nodes_as_they_have_one_copy_each(ring: Ring) -> None:
    create_operator(RING, DELIVERED, 3)
    create_operator(RING, DELIVERED, 3)

    assert ring.consistencies == ["ALL", "ALL", "ALL", "QUORUM", "QUORUM"]


@pytest.mark.parametrize("name", ["evil", "operator", PROCESSES[0]])
def test_a_role_that_was_there_before_the_operator_ends_every_start(ring: Ring, name: str) -> None:
    ring.roles[name] = Ring.role("of somebody else", is_superuser=True)

    for _ in range(2):
        with pytest.raises(OperatorError, match=f"`{name}`") as refused:
            create_operator(RING, DELIVERED, 1)

    assert "delete its folders of Cassandra" in refused.value.do


def test_a_role_that_somebody_makes_during_the_set_up_ends_every_start(
    ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def somebody(_: float) -> None:
        ring.roles["evil"] = Ring.role("of somebody else", is_superuser=True)

    monkeypatch.setattr(time, "sleep", somebody)

    for _ in range(2):
        with pytest.raises(OperatorError, match="`evil`"):
            create_operator(RING, DELIVERED, 1)


def test_a_role_that_has_become_part_of_another_ends_the_start(ring: Ring) -> None:
    ring.members.append(SimpleNamespace(role="operator", member="cassandra"))

    with pytest.raises(OperatorError, match="`cassandra in operator`"):
        create_operator(RING, DELIVERED, 1)


def test_an_interrupted_set_up_goes_on_and_makes_the_roles_of_processes_anew(ring: Ring) -> None:
    ring.roles["operator"] = Ring.role("of this home", is_superuser=True)
    ring.roles[PROCESSES[0]] = Ring.role("of somebody else", is_superuser=True)

    create_operator(RING, DELIVERED, 1)

    assert ring.roles.keys() == {"operator"}
    assert ring.consistencies[-1] == "ALL"


def test_a_former_home_with_a_locked_delivered_user_may_have_other_roles(ring: Ring) -> None:
    ring.roles["operator"] = Ring.role("of this home", is_superuser=True)
    ring.roles["cassandra"] |= {"can_login": False, "is_superuser": False}
    ring.roles["grafana"] = Ring.role("of the operator")

    create_operator(RING, DELIVERED, 1)

    assert ring.roles.keys() == {"operator", "cassandra", "grafana"}
