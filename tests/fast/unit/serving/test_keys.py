"""A key opens what it was made for, until it ends, and is never known in full by anybody but its holder."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from master_dataset.errors import CassandraUnavailableError
from serving_layer.errors import ApiKeyMissingError, InvalidApiKeyError
from serving_layer.keys.authenticator import REFRESH_SECONDS, STALE_SECONDS, KeyCache
from serving_layer.keys.key import OPERATOR, Caller, Key, id_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class Stack:
    """Keys that are kept somewhere, and one process that knows them."""

    kept: dict[str, Key] = field(default_factory=dict)
    is_down: bool = False
    seconds: float = 0.0
    now: datetime = NOW
    anonymous: str = "default"
    reads: int = 0
    pause: float = 0.0

    def __post_init__(self) -> None:
        self.known = KeyCache(self, "the stack's own", self.anonymous, lambda: self.seconds, lambda: self.now)

    async def keys(self) -> Iterable[Key]:
        self.reads += 1
        await asyncio.sleep(self.pause)
        if self.is_down:
            raise CassandraUnavailableError("It is down.", do="Wait.")
        return list(self.kept.values())

    def make(self, tenant: str = "acme", expires_at: datetime | None = NOW + DAY) -> str:
        text, key = Key.new(tenant, ("read",), "a test", NOW, expires_at)
        self.kept[key.id] = key
        return text

    def change(self, text: str, **fields: datetime) -> None:
        self.kept[id_of(text)] = replace(self.kept[id_of(text)], **fields)  # type: ignore[arg-type]

    def caller(self, text: str | None) -> Caller:
        return asyncio.run(self.known.caller(None if text is None else f"Bearer {text}"))


@pytest.fixture
def stack() -> Stack:
    return Stack()


def test_a_key_opens_the_stores_of_its_tenant(stack: Stack) -> None:
    caller = stack.caller(stack.make("acme"))

    assert caller == Caller(caller.name, "acme", frozenset({"read"}))
    assert not caller.sees_all


def test_a_key_of_every_tenant_sees_all_stores(stack: Stack) -> None:
    assert stack.caller(stack.make("*")).sees_all


def test_the_key_of_the_stack_may_do_everything_even_while_keys_cannot_be_read(stack: Stack) -> None:
    stack.is_down = True

    assert stack.caller("the stack's own") == OPERATOR


def test_without_a_key_the_stores_of_one_tenant_are_shown_if_the_stack_says_so() -> None:
    assert Stack(anonymous="default").caller(None) == Caller("anonymous", "default", frozenset({"read"}))
    with pytest.raises(ApiKeyMissingError):
        Stack(anonymous="").caller(None)


def test_of_a_key_only_a_digest_is_kept(stack: Stack) -> None:
    text = stack.make()
    secret = text.split("_", 2)[2]

    assert secret not in repr(stack.kept)
    assert len(secret) == 43  # 256 bits


@pytest.mark.parametrize("wrong", ["", "galatea", "galatea_x_y", "the stack's own!", "ключ", "galatea_" + "0" * 5000])
def test_what_is_no_key_opens_nothing(stack: Stack, wrong: str) -> None:
    with pytest.raises(InvalidApiKeyError):
        stack.caller(wrong)


def test_the_secret_of_one_key_does_not_fit_the_id_of_another(stack: Stack) -> None:
    one, other = stack.make(), stack.make()
    mixed = "_".join([*one.split("_", 2)[:2], other.split("_", 2)[2]])

    with pytest.raises(InvalidApiKeyError):
        stack.caller(mixed)


def test_another_scheme_is_no_key(stack: Stack) -> None:
    with pytest.raises(InvalidApiKeyError):
        asyncio.run(stack.known.caller("Basic " + stack.make()))


def test_a_key_ends_when_it_expires(stack: Stack) -> None:
    text = stack.make(expires_at=NOW + DAY)
    stack.caller(text)

    stack.now = NOW + DAY

    with pytest.raises(InvalidApiKeyError):
        stack.caller(text)


def test_a_revoked_key_opens_nothing_once_the_keys_were_read_again(stack: Stack) -> None:
    text = stack.make()
    stack.caller(text)
    stack.change(text, revoked_at=NOW)

    stack.seconds = REFRESH_SECONDS

    with pytest.raises(InvalidApiKeyError):
        stack.caller(text)


def test_a_new_key_is_good_once_the_keys_were_read_again(stack: Stack) -> None:
    stack.caller(stack.make())
    text = stack.make()
    stack.seconds = REFRESH_SECONDS

    assert stack.caller(text).tenant == "acme"
    assert stack.reads == 2


def test_whoever_waits_for_keys_that_cannot_be_read_waits_for_one_failure_of_all(stack: Stack) -> None:
    text = stack.make()
    asyncio.run(stack.known.caller(f"Bearer {text}"))
    stack.reads, stack.is_down, stack.seconds, stack.pause = 0, True, STALE_SECONDS + 1, 0.01

    async def together() -> list[Caller | BaseException]:
        callers = (stack.known.caller(f"Bearer {text}") for _ in range(20))
        return await asyncio.gather(*callers, return_exceptions=True)

    assert {type(each) for each in asyncio.run(together())} == {CassandraUnavailableError}
    assert stack.reads <= 2


def test_keys_that_cannot_be_read_are_good_for_five_seconds_and_no_longer(stack: Stack) -> None:
    text = stack.make()
    stack.caller(text)
    stack.is_down = True

    stack.seconds = STALE_SECONDS - 0.1
    assert stack.caller(text).tenant == "acme"
    stack.seconds = STALE_SECONDS

    with pytest.raises(CassandraUnavailableError):
        stack.caller(text)
