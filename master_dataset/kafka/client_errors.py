"""Why Kafka does not let a client in, as sentences that name the setting to change.

librdkafka reports a wrong password or certificate only to `error_cb`; the call itself fails as if there were no broker.
And it names one kind of error for all faults of a certificate, so that the handshake is tried again to tell them apart.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from master_dataset.errors import BrokerAccessError, BrokerUnavailableError, OperatorError
from master_dataset.kafka.connection import PLAINTEXT, KafkaConnection, OAuthLogin
from master_dataset.tls import GUIDE, Tls, TlsNames

Client = TypeVar("Client")
NAMES = TlsNames("GALATEA_KAFKA", "GALATEA_KAFKA_BOOTSTRAP", "GALATEA_KAFKA_SECURITY_PROTOCOL")
NO_RIGHT = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})  # noqa: SLF001 - its names
_SILENT = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})  # noqa: SLF001 - its names
_RECENT_SECONDS = 60.0
"""A client reports an error again with each attempt to connect, at least every ten seconds."""
_PLACE = re.compile(r"\w+://\[?([^\]/]+)\]?:(\d+)/")
_JAVA = re.compile(r"org\.apache\.kafka\.common\.errors\.(\w+)Exception(?:: ([^\r\n]+))?")
_JAVA_REJECTS = {
    "TopicAuthorization": f"grant the right: {GUIDE}#rights-in-kafka",
    "GroupAuthorization": f"grant the right: {GUIDE}#rights-in-kafka",
    "SaslAuthentication": f"correct {NAMES.prefix}_USER and {NAMES.prefix}_PASSWORD, or its file",
    "SslAuthentication": f"check {NAMES.prefix}_CA_FILE, also on the executors, and the certificates of the brokers",
}
_TIME = re.compile(r" \(after \d+ms in state \w+\)")


class ClientErrors:
    """The errors that one client reports, if it is made with `connect` or with `note` as its `error_cb`."""

    def __init__(self, kafka: KafkaConnection) -> None:
        """`kafka`: the connection of the client."""
        self._kafka = kafka
        self._noted: tuple[float, KafkaError] | None = None

    def connect(self, kind: Callable[[dict[str, Any]], Client], options: Mapping[str, Any]) -> Client:
        """Make a client of the driver. OperatorError if it does not accept an option."""
        try:
            return kind({**self._kafka.client(), **options, "error_cb": self.note})
        except KafkaException as error:
            message = f"the Kafka client does not accept its options: {error.args[0].str()}"
            do = f"correct the files of {NAMES.prefix}_..., or {NAMES.prefix}_CLIENT_OPTIONS"
            raise OperatorError(message, do=do) from error

    def note(self, error: KafkaError) -> None:
        """Remember an error that says why there is no connection. The driver calls it while the client is polled."""
        if says_why(error):
            self._noted = time.monotonic(), error

    def translated(self, error: KafkaException, what: str) -> BrokerUnavailableError:
        """Return the error of a call as ours. Poll the client before, so that it has reported everything.

        Args:
            error: What the call raised.
            what: What cannot be done, as in `read the topic`.

        Returns:
            BrokerAccessError if a setting, a right or a certificate has to be changed.
        """
        own: KafkaError = error.args[0]
        is_plain = own.code() not in NO_RIGHT | _NO_TOPIC and not says_why(own)
        if is_plain and self._noted is not None and time.monotonic() - self._noted[0] < _RECENT_SECONDS:
            own = self._noted[1]
        return explained(own, self._kafka, what)


def explained(error: KafkaError, kafka: KafkaConnection, what: str) -> BrokerUnavailableError:
    """Return an error of the driver as ours. If the certificate of a broker is not trusted, look at it again.

    Args:
        error: Of the driver.
        kafka: The connection of the client.
        what: What cannot be done, as in `read the topic`.
    """
    code = error.code()
    if code in NO_RIGHT | _NO_TOPIC:
        return _not_allowed(error, kafka, what)
    if code == KafkaError._AUTHENTICATION:  # noqa: SLF001 - its name
        return _not_authenticated(error, kafka, what)
    if kafka.tls is not None and says_why(error):
        return _no_tls(error, kafka.tls, what)
    why = f"Kafka at `{kafka.bootstrap}` does not respond" if code in _SILENT else error.str()
    return BrokerUnavailableError(f"cannot {what}: {why}", do="galatea status")


def rejection_in(text: str) -> BrokerAccessError | None:
    """Return what Kafka has rejected, from the text of an error of Spark, whose client is in Java; None if nothing."""
    for found in _JAVA.finditer(text):
        if (do := _JAVA_REJECTS.get(found[1])) is not None:
            return BrokerAccessError(f"Kafka rejects Spark: {found[2] or found[1]}", do=do)
    return None


def says_why(error: KafkaError) -> bool:
    """Whether it says why a connection failed: because of TLS or the login."""
    if error.code() == KafkaError._TRANSPORT:  # noqa: SLF001 - its name
        return "SSL" in error.str()
    return error.code() in {KafkaError._SSL, KafkaError._AUTHENTICATION}  # noqa: SLF001 - its names


def _not_allowed(error: KafkaError, kafka: KafkaConnection, what: str) -> BrokerUnavailableError:
    """Without the right to see a topic, it is missing."""
    if error.code() in NO_RIGHT:
        message = f"cannot {what}: Kafka does not allow it to {kafka.identity} ({error.str()})"
        return BrokerAccessError(message, do=f"grant the right: {GUIDE}#rights-in-kafka")
    if kafka.protocol == PLAINTEXT:
        return BrokerUnavailableError(f"cannot {what}: it does not exist", do="galatea up")
    message = f"cannot {what}: it does not exist, or {kafka.identity} may not see it"
    return BrokerUnavailableError(message, do=f"create it, or grant the right: {GUIDE}#rights-in-kafka")


def _no_tls(error: KafkaError, tls: Tls, what: str) -> BrokerUnavailableError:
    place = _PLACE.match(error.str())
    problem = tls.problem(place[1], int(place[2]), NAMES) if place else None
    if problem is None:  # it has passed
        return BrokerUnavailableError(f"cannot {what}: {_TIME.sub('', error.str())}", do="try again")
    kind = BrokerUnavailableError if problem.passes else BrokerAccessError
    return kind(f"cannot {what}: {problem.message}", do=problem.do)


def _not_authenticated(error: KafkaError, kafka: KafkaConnection, what: str) -> BrokerUnavailableError:
    text, of_oauth = _TIME.sub("", error.str()), isinstance(kafka.login, OAuthLogin)
    if of_oauth and "acquire" in text:  # the provider may be down
        message = f"cannot {what}: {kafka.identity} gets no token: {text}"
        do = f"correct {NAMES.prefix}_OAUTH_CLIENT_ID and its secret, or look at the identity provider"
        return BrokerUnavailableError(message, do=do)
    message = f"cannot {what}: Kafka rejects {kafka.identity}: {text}"
    if "unsupported sasl mechanism" in text.lower():
        return BrokerAccessError(message, do=f"set {NAMES.prefix}_SASL_MECHANISM to one that the broker offers")
    if of_oauth:
        return BrokerAccessError(message, do=f"correct {NAMES.prefix}_OAUTH_CLIENT_ID or {NAMES.prefix}_OAUTH_SCOPE")
    return BrokerAccessError(message, do=f"correct {NAMES.prefix}_USER and {NAMES.prefix}_PASSWORD, or its file")
