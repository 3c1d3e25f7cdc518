"""Settings as kafka-python's arguments, and what that client's refusals mean to the person who wrote the settings."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import Any

from kafka.errors import (
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from streaming.config.security import Secrets, SecuritySettings
from streaming.security.oauth import ClientCredentialsTokens, TokenError


class Hidden(str):
    """A text that is not shown where its owner is: kafka-python logs all its arguments at DEBUG.

    >>> [Hidden("secret")], Hidden("secret") == "secret"
    ([***], True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Nothing of it."""
        return "***"


def client_arguments(security: SecuritySettings, secrets: Secrets) -> Mapping[str, Any]:
    """kafka-python's arguments; none for PLAINTEXT.

    >>> client_arguments(SecuritySettings(protocol="SSL"), Secrets())
    {'security_protocol': 'SSL', 'ssl_check_hostname': True}
    """
    if security.protocol == "PLAINTEXT":
        return {}
    given = {
        "security_protocol": security.protocol,
        "ssl_check_hostname": security.verify_hostname if security.has_tls else None,
        "ssl_cafile": security.ca_file and str(security.ca_file),
        "ssl_certfile": security.certificate_file and str(security.certificate_file),
        "ssl_keyfile": security.key_file and str(security.key_file),
        "ssl_password": None if secrets.key_password is None else Hidden(secrets.key_password),
        "sasl_mechanism": security.mechanism,
        "sasl_plain_username": security.username,
        "sasl_plain_password": None if secrets.password is None else Hidden(secrets.password),
        "sasl_oauth_token_provider": (
            ClientCredentialsTokens(security, secrets, time.monotonic) if security.mechanism == "OAUTHBEARER" else None
        ),
    }
    return {name: value for name, value in given.items() if value is not None}


def refusal(error: BaseException, security: SecuritySettings) -> str | None:
    """What is wrong and what to check, where trying again would not help; None where it might.

    >>> refusal(SaslAuthenticationFailedError(), SecuritySettings()) is None, refusal(OSError(), SecuritySettings())
    (False, None)
    """
    if isinstance(error, TokenError):
        return str(error)
    if isinstance(error, SaslAuthenticationFailedError):
        return _credentials_refused(security)
    if isinstance(error, (UnsupportedSaslMechanismError, IllegalSaslStateError)):
        return f"the broker does not take {security.mechanism}: check kafka.security.mechanism"
    reason = _tls_error(error)
    return None if reason is None or isinstance(reason, _LOST) else _tls_refusal(reason)


def _credentials_refused(security: SecuritySettings) -> str:
    if security.mechanism == "OAUTHBEARER":
        return "the broker refuses the token: check kafka.security.oauth_scope and oauth_token_endpoint"
    return (
        f"the broker refuses user {security.username!r} with {security.mechanism}:"
        " check kafka.security.username, password and mechanism"
    )


def suspicion(error: BaseException | None, security: SecuritySettings) -> str:
    """What may be behind a failure that trying again did not help against.

    A plain port hangs up when TLS begins, and so may one that wants a certificate before we hear its alert. A broker
    or a proxy that does not know what to do with us hangs up while we log in.
    """
    if isinstance(_tls_error(error), _LOST):
        return "it hangs up while TLS begins: check kafka.security.protocol and certificate_file"
    if security.has_sasl and "socket disconnected" in str(error):
        return f"it hangs up while we log in; {_credentials_refused(security).replace('refuses', 'may refuse')}"
    return "check kafka.bootstrap_servers, kafka.security.protocol and that the broker runs"


_LOST = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """The TLS error behind one of the client's: its cause, or what it was made of."""
    while error is not None:
        inside = next((part for part in error.args if isinstance(part, ssl.SSLError)), error)
        if isinstance(inside, ssl.SSLError):
            return inside
        error = error.__cause__ or error.__context__
    return None


def _tls_refusal(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
        is_for_another = error.verify_code in {62, 64}
        setting = "kafka.bootstrap_servers or verify_hostname" if is_for_another else "kafka.security.ca_file"
        return f"the broker's certificate is not accepted ({error.verify_message}): check {setting}"
    reason = (error.reason or "TLS failed").lower().replace("_", " ")
    if "alert" in reason:
        return f"the broker refuses our TLS ({reason}): check kafka.security.certificate_file and key_file"
    if "wrong version" in reason or "record layer" in reason or "packet length" in reason:
        return f"the broker does not speak TLS at this port ({reason}): check kafka.security.protocol"
    return f"TLS cannot be set up ({reason}): check ca_file, certificate_file, key_file and its password"
