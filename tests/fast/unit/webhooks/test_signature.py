"""A receiver can tell, with any library for Standard Webhooks, who sent a body, and that it was sent just now."""

import base64
import hashlib
import hmac
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from master_dataset.webhooks.endpoint import new_secret
from speed_layer.webhooks.signature import key_of, signature, signed_headers

NOW = 1_800_000_000
BODY = b'{"alerts":[]}'


def test_the_signature_is_that_of_the_reference_vector() -> None:
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

    found = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert found == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.text("0123456789abcdef-", min_size=1), st.text(), st.integers(0, 2**31))
def test_the_library_signs_alike(message_id: str, text: str, at: int) -> None:
    secret = new_secret()

    expected = Webhook(secret).sign(message_id, datetime.fromtimestamp(at, UTC), text)

    assert signed_headers(secret, message_id, at, text.encode())["webhook-signature"] == expected


def test_the_library_accepts_what_was_signed_just_now() -> None:
    secret = new_secret()

    headers = dict(signed_headers(secret, "6f0c81d2", int(time.time()), BODY))

    assert Webhook(secret).verify(BODY, headers) == {"alerts": []}


@pytest.mark.parametrize("late_s", [-310, 310])
def test_the_library_rejects_another_time(late_s: int) -> None:
    secret = new_secret()

    headers = dict(signed_headers(secret, "6f0c81d2", int(time.time()) + late_s, BODY))

    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(BODY, headers)


@pytest.mark.parametrize("changed", ["secret", "id", "body"])
def test_the_library_rejects_another_secret_id_or_body(changed: str) -> None:
    secret = new_secret()
    headers = dict(signed_headers(secret, "6f0c81d2", int(time.time()), BODY))
    if changed == "id":
        headers["webhook-id"] = "6f0c81d3"

    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret() if changed == "secret" else secret).verify(
            BODY + b" " if changed == "body" else BODY, headers
        )


@given(st.binary(min_size=32, max_size=32))
def test_a_secret_of_the_former_alphabet_has_the_key_of_its_standard_form(key: bytes) -> None:
    former = f"whsec_{base64.urlsafe_b64encode(key).decode().rstrip('=')}"
    standard = former.replace("-", "+").removeprefix("whsec_").replace("_", "/")

    assert key_of(former) == key_of(f"whsec_{standard}") == key


def test_the_former_header_is_as_it_was() -> None:
    expected = hmac.new(b"whsec_YWJj", f"{NOW}.".encode() + BODY, hashlib.sha256).hexdigest()

    headers = signed_headers("whsec_YWJj", "6f0c81d2", NOW, BODY)

    assert headers["Galatea-Signature"] == f"t={NOW},v1={expected}"
    assert headers["Idempotency-Key"] == headers["webhook-id"] == "6f0c81d2"
    assert headers["webhook-timestamp"] == str(NOW)
