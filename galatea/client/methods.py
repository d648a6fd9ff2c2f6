"""Questions as methods of the two clients: same arguments, same words; only who waits differs."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from galatea.client.call import Call, Pages, Steps

if TYPE_CHECKING:
    from galatea.client.client import AsyncClient, Client

P = ParamSpec("P")
T = TypeVar("T")


def called(ask: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    """A method that waits for the answer."""

    @wraps(ask)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> T:
        return self.call(ask(*args, **named))

    return _shown(method, ask)


def called_steps(ask: Callable[P, Steps[T]]) -> "Callable[Concatenate[Client, P], T]":
    """A method that waits for the answer of several calls."""

    @wraps(ask)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> T:
        return self.follow(ask(*args, **named))

    return _shown(method, ask)


def called_each(ask: Callable[P, Pages[T]]) -> "Callable[Concatenate[Client, P], Iterator[T]]":
    """A method that gives what is on all pages."""

    @wraps(ask)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> Iterator[T]:
        return self.each(ask(*args, **named))

    return _shown(method, ask)


def awaited(ask: Callable[P, Call[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    """A method whose answer is awaited."""

    @wraps(ask)
    async def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> T:
        return await self.call(ask(*args, **named))

    return _shown(method, ask)


def awaited_steps(ask: Callable[P, Steps[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    """A method whose answer, of several calls, is awaited."""

    @wraps(ask)
    async def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> T:
        return await self.follow(ask(*args, **named))

    return _shown(method, ask)


def awaited_each(ask: Callable[P, Pages[T]]) -> "Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]":
    """A method that gives what is on all pages, for `async for`."""

    @wraps(ask)
    def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> AsyncIterator[T]:
        return self.each(ask(*args, **named))

    return _shown(method, ask)


Method = TypeVar("Method", bound=Callable[..., Any])


def _shown(method: Method, ask: Callable[..., Any]) -> Method:
    """With the signature that `help` and a notebook show: `self`, and each argument by its name."""
    arguments: list[inspect.Parameter] = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for each in inspect.signature(ask).parameters.values():
        arguments += _unpacked(each) if each.kind is inspect.Parameter.VAR_KEYWORD else [each]
    method.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined]
    return method


def _unpacked(named: inspect.Parameter) -> list[inspect.Parameter]:
    """The arguments that `**named: Unpack[...]` stands for."""
    [of] = get_args(named.annotation)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in get_type_hints(of).items()]
