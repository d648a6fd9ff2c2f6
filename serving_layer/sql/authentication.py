"""Who connects: the user is a tenant, the password an API key with the scope `read`."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

import structlog

from master_dataset.errors import GalateaError
from serving_layer.errors import ApiKeyMissingError, InvalidApiKeyError, ScopeMissingError
from serving_layer.keys.authenticator import Authenticator
from serving_layer.keys.key import Caller, Scope
from serving_layer.keys.throttle import WrongKeyThrottle
from serving_layer.sql.conversation import KeyLostError, as_sql_error
from serving_layer.sql.results import SqlStateError

READ: Scope = "read"
DEFAULT_TENANT = "default"
"""The tenant of stores that name none. It exists in every deployment."""
_SHOWN = 100
"""Characters of a user's name in the log and in errors."""
OF_ADDRESS, OF_USER = 100, 10
"""Wrong passwords per minute from one address, for whatever users, and for one user from one address."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Login:
    """A login that succeeded: who it is, and the key, which is checked again before each statement."""

    caller: Caller
    user: str
    key: str = field(repr=False)


class LoginService:
    """Checks logins. One per process and event loop."""

    def __init__(
        self,
        authenticator: Authenticator,
        tenants: Callable[[], Awaitable[Collection[str]]],
        throttle: WrongKeyThrottle | None = None,
    ) -> None:
        """Set it up.

        Args:
            authenticator: checks keys, as for REST.
            tenants: the tenants that have stores: a key for all tenants opens only these.
            throttle: limits wrong passwords.
        """
        self._authenticator, self._tenants = authenticator, tenants
        self._throttle = throttle or WrongKeyThrottle(OF_ADDRESS, OF_USER)

    async def log_in(self, address: str, user: str, password: str) -> Login:
        """Check a login.

        Args:
            address: of the client, for the throttle.
            user: the tenant whose data the session will see.
            password: the key. It is neither logged nor part of an error.

        Returns:
            The caller, limited to that tenant also if the key is for all of them.

        Raises:
            SqlStateError: 28P01 for a wrong password or too many of them; 28000 for a key that may not do this; 57P03
                if keys cannot be read for now.
        """
        self._require_few(address, user)
        try:
            caller = await self._caller(user, password)
        except SqlStateError as error:
            if error.code.startswith("28"):
                self._throttle.count(address, user)
                log.info("sql.login_refused", user=user[:_SHOWN], address=address, sqlstate=error.code)
            raise
        return Login(caller, user, password)

    async def require(self, login: Login) -> None:
        """Check again that the key is valid, before a statement.

        Raises:
            KeyLostError: it has expired or was revoked.
            SqlStateError: keys cannot be read for now.
        """
        try:
            await self._caller(login.user, login.key)
        except SqlStateError as error:
            if error.code.startswith("28"):
                raise KeyLostError(error.code, error.message, error.hint) from error
            raise

    def _require_few(self, address: str, user: str) -> None:
        if self._throttle.seconds_to_wait(address, user):
            message = f'Too many wrong passwords were sent for the user "{user[:_SHOWN]}" or from this address.'
            raise SqlStateError("28P01", message, "Wait a minute, then send a valid key.")

    async def _caller(self, user: str, password: str) -> Caller:
        if not password:
            raise SqlStateError("28P01", "There is no password.", "The password is an API key: galatea keys create")
        try:
            caller = await self._authenticator.identify(f"Bearer {password}", READ)
        except (InvalidApiKeyError, ApiKeyMissingError) as error:
            message = f'The password for the user "{user[:_SHOWN]}" is not a valid API key.'
            hint = (
                f"The password is an API key of this tenant: galatea keys create --tenant {user[:_SHOWN]} --scope read"
            )
            raise SqlStateError("28P01", message, hint) from error
        except ScopeMissingError as error:
            raise SqlStateError("28000", error.message, error.do) from error
        except GalateaError as error:
            raise as_sql_error(error) from error
        if caller.tenant is None:
            await self._require_tenant(user)
        elif caller.tenant != user:
            message = f'The key is not one of the tenant "{user[:_SHOWN]}".'
            raise SqlStateError("28000", message, "The user is the tenant that the key was created for.")
        return Caller(caller.name, user, frozenset({READ}))

    async def _require_tenant(self, user: str) -> None:
        try:
            known = await self._tenants()
        except GalateaError as error:
            raise as_sql_error(error) from error
        if user not in known and user != DEFAULT_TENANT:
            message = f'There is no tenant "{user[:_SHOWN]}" with stores.'
            raise SqlStateError("28000", message, "The user is a tenant; `galatea stores list` shows them.")
