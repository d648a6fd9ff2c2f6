"""Every limit of the REST API is a setting, and has the same default without any."""

from dataclasses import fields
from datetime import timedelta

import pytest

from deploy.sections import InvalidSettingsError, LimitSettings
from deploy.services.sql import server_limits, sql_limits
from deploy.settings import FUTURE, Settings
from master_dataset.kafka.client_settings import BufferLimits
from master_dataset.parsing.parse import FUTURE_US
from serving_layer.http.connections import ConnectionLimits
from serving_layer.limits import LIMITS, RANGES, Limits, Ranges
from serving_layer.sql.conversation import ConversationLimits
from serving_layer.sql.server import ServerLimits
from serving_layer.sql.session import SqlLimits

SETTINGS = LimitSettings.model_fields


def test_without_a_variable_every_limit_is_as_it_is_without_settings() -> None:
    settings = Settings()

    assert settings.limits.request_limits == LIMITS
    assert settings.limits.ranges == RANGES
    assert settings.limits.connection_limits == ConnectionLimits()
    assert settings.limits.producer_limits == BufferLimits()


def test_without_a_variable_the_limits_of_sql_are_as_they_are_without_settings() -> None:
    assert server_limits(Settings()) == ServerLimits()
    assert sql_limits(Settings()) == SqlLimits()


def test_a_variable_changes_a_limit_of_sql() -> None:
    changed = Settings(sql_connections=7, sql_connections_per_tenant=3, sql_idle_seconds=5, sql_result_mb=2)

    assert server_limits(changed) == ServerLimits(
        7, 3, idle_seconds=5, conversation=ConversationLimits(result_bytes=2_000_000)
    )


def test_settings_know_how_far_in_the_future_the_parser_lets_an_event_be() -> None:
    assert FUTURE / timedelta(microseconds=1) == FUTURE_US


@pytest.mark.parametrize("name", sorted({each.name for of in (Limits, ConnectionLimits) for each in fields(of)}))
def test_a_variable_changes_that_limit_alone(name: str) -> None:
    changed = SETTINGS[name].default + 1

    settings = Settings(**{name: changed})

    for limits, usual in (
        (settings.limits.request_limits, LIMITS),
        (settings.limits.connection_limits, ConnectionLimits()),
    ):
        assert vars(limits) == vars(usual) | ({name: changed} if name in vars(usual) else {})


def test_ranges_of_queries_and_limits_of_the_producer_are_settings_too() -> None:
    settings = Settings(range_fine_days=7, range_days=70, producer_records=10, producer_bytes=2_000_000)

    assert settings.limits.ranges == Ranges(7, 70)
    assert settings.limits.producer_limits == BufferLimits(10, 2_000_000)


@pytest.mark.parametrize(("name", "former"), sorted(LimitSettings.former.items()))
def test_a_former_name_counts_unless_the_new_one_is_set(
    name: str, former: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = SETTINGS[name].default
    monkeypatch.setenv(f"GALATEA_{former.upper()}", str(default + 1))
    by_former_name = Settings().values()[name]
    by_override = Settings(**{name: default + 3}).values()[name]
    monkeypatch.setenv(f"GALATEA_{name.upper()}", str(default + 2))
    by_new_name = Settings().values()[name]

    assert (by_former_name, by_new_name, by_override) == (default + 1, default + 2, default + 3)
    assert former not in Settings.catalogue()


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_less_than_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidSettingsError, match=r"must be (at least|more than) [0-9]+$"):
        Settings(**{name: -1})


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("EPOCH_SECONDS", "five", "must be a whole number"),
        ("EPOCH_SECONDS", "0", "must be at least 1"),
        ("RECEIVE_SECONDS", "0", "must be more than 0"),
        ("AT_LEAST_SECONDS", "soon", "must be a number"),
        ("AT_LEAST_SECONDS", "61", "must be at most 60"),
        ("DISK_FREE_PERCENT", "100", "must be less than 100"),
        ("S3_PATH_STYLE", "perhaps", "must be true or false"),
        ("SMTP_TLS", "ssl", "must be 'starttls', 'tls' or 'none'"),
        ("LINEAGE_NAMESPACE", "", "must not be empty"),
        ("SPARK_CONF", '{"spark.x": 1}', "`spark.x` must be a string"),
    ],
)
def test_an_invalid_setting_is_explained_in_our_words(
    variable: str, value: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"GALATEA_{variable}", value)

    with pytest.raises(InvalidSettingsError) as refused:
        Settings()

    assert list(refused.value.problems) == [f"`GALATEA_{variable}`: {problem}"]
