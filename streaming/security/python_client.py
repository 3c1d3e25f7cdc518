"""Convert the settings to arguments of kafka-python. Convert errors of kafka-python to messages for the operator."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import Any

from kafka.errors import IllegalSaslStateError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError

from streaming.config.security import Secrets, SecuritySettings
from streaming.security.oauth import ClientCredentialsTokens, TokenError


class Hidden(str):
    """A string whose repr hides the content, because kafka-python logs its arguments at the level DEBUG.

    >>> [Hidden("secret")], Hidden("secret") == "secret"
    ([***], True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return `***` instead of the content."""
        return "***"


def client_arguments(security: SecuritySettings, secrets: Secrets) -> Mapping[str, Any]:
    """Return the arguments for kafka-python's clients. The result is empty for PLAINTEXT.

    >>> client_arguments(SecuritySettings(protocol="SSL"), Secrets())
    {'security_protocol': 'SSL', 'ssl_check_hostname': True}
    """
    if security.protocol == "PLAINTEXT":
        return {}
    arguments = {
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
    return {name: value for name, value in arguments.items() if value is not None}


def refusal(error: BaseException, security: SecuritySettings) -> str | None:
    """Return a text with the error and the settings to check, or None if a retry can succeed.

    >>> refusal(SaslAuthenticationFailedError(), SecuritySettings()) is None, refusal(OSError(), SecuritySettings())
    (False, None)
    """
    if isinstance(error, TokenError):
        return str(error)
    if isinstance(error, SaslAuthenticationFailedError):
        return _credentials_message(security)
    if isinstance(error, (UnsupportedSaslMechanismError, IllegalSaslStateError)):
        return f"the broker does not accept mechanism {security.mechanism}: check kafka.security.mechanism"
    reason = _find_tls_error(error)
    return None if reason is None or isinstance(reason, _CONNECTION_CLOSED) else _tls_message(reason)


def _credentials_message(security: SecuritySettings) -> str:
    if security.mechanism == "OAUTHBEARER":
        return "the broker rejects the token: check kafka.security.oauth_scope and oauth_token_endpoint"
    return (
        f"the broker rejects user {security.username!r} with {security.mechanism}:"
        " check kafka.security.username, password and mechanism"
    )


def suspicion(error: BaseException | None, security: SecuritySettings) -> str:
    """Return the probable cause of an error, and the settings to check. Call this function after the last retry.

    If a connection ends during the TLS handshake, the port probably has no TLS, or the client certificate is missing.
    If a connection ends during authentication, the credentials are probably wrong.
    """
    if isinstance(_find_tls_error(error), _CONNECTION_CLOSED):
        return (
            "the broker closes the connection during the TLS handshake: check kafka.security.protocol and"
            " certificate_file"
        )
    if security.has_sasl and "socket disconnected" in str(error):
        cause = _credentials_message(security).replace("the broker rejects", "it may reject")
        return f"the broker closes the connection during authentication; {cause}"
    return "check kafka.bootstrap_servers, kafka.security.protocol and that the broker runs"


_CONNECTION_CLOSED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def _find_tls_error(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None:
        ssl_error = next((part for part in error.args if isinstance(part, ssl.SSLError)), error)
        if isinstance(ssl_error, ssl.SSLError):
            return ssl_error
        error = error.__cause__ or error.__context__
    return None


def _tls_message(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
        is_name_mismatch = error.verify_code in {62, 64}
        setting = "kafka.bootstrap_servers or verify_hostname" if is_name_mismatch else "kafka.security.ca_file"
        return f"the monitor does not accept the broker's certificate ({error.verify_message}): check {setting}"
    reason = (error.reason or "TLS failed").lower().replace("_", " ")
    if "alert" in reason:
        return f"the broker rejects the TLS handshake ({reason}): check kafka.security.certificate_file and key_file"
    if "wrong version" in reason or "record layer" in reason or "packet length" in reason:
        return f"the broker does not use TLS on this port ({reason}): check kafka.security.protocol"
    return f"the TLS handshake failed ({reason}): check ca_file, certificate_file, key_file and its password"
