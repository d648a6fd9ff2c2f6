"""The gate before every route: who asks, whether it is theirs, and how often they may."""

from dataclasses import dataclass, field

from serving_layer.api.limits import LIMITS
from serving_layer.errors import KeyMissing, ScopeMissing
from serving_layer.keys.caller import Caller
from serving_layer.keys.concurrency import Concurrency
from serving_layer.keys.key import Scope
from serving_layer.keys.known_keys import KnownKeys
from serving_layer.keys.rates import Rates


@dataclass(frozen=True)
class Gate:
    """One per process and event loop."""

    keys: KnownKeys
    rates: Rates
    concurrency: Concurrency = field(default_factory=lambda: Concurrency(LIMITS.requests_per_key))

    async def caller(self, authorization: str | None, scope: Scope) -> Caller:
        """Whoever sends that header. KeyMissing, KeyWrong, ScopeMissing, TooOften, StoreUnavailable."""
        caller = await self.known(authorization, scope)
        self.rates.count(caller, scope)
        return caller

    async def known(self, authorization: str | None, scope: Scope) -> Caller:
        """The same, uncounted."""
        caller = await self.keys.caller(authorization)
        if not _may(caller, scope):
            do = f"Send a key with the scope `{scope}`: `galatea keys create --scope {scope}` makes one."
            if not authorization:
                raise KeyMissing(f"This needs the scope `{scope}`, and the request has no key.", do=do)
            raise ScopeMissing(f"The key of the request does not have the scope `{scope}`.", do=do)
        return caller


def _may(caller: Caller, scope: Scope) -> bool:
    """What `operate` opens is everybody's, so that it holds what a tenant may change of its own."""
    is_operator = "operate" in caller.scopes and caller.sees_all
    return is_operator if scope == "operate" else scope in caller.scopes or (scope == "configure" and is_operator)
