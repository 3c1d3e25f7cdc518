"""Test the rules of `kafka.security`: settings that cannot work are errors at the start.

The numbers of the rules are those in the docstring of the settings.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from click.testing import CliRunner
from pydantic import ValidationError

import streaming.config.private_files
from streaming.cli.config import config
from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import ConfigError, forget_secrets, load_settings
from streaming.config.secret_settings import REDACTED
from streaming.config.security import Secrets, SecuritySettings, read_secrets
from tests.streaming.security.pem import KEY_PASSWORD, write_pem_files

SECRET = "hunter2"  # noqa: S105 - what must not be shown
SCRAM = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "monitor"}
OAUTH = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "oauth_token_endpoint": "https://id/token"}
MUTUAL = {"protocol": "SSL", "certificate_file": "client.pem"}


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pem")
    write_pem_files(folder, trustme.CA())
    (folder / "password").write_text(f"{SECRET}\r\n")
    (folder / "empty").write_text("\n")
    (folder / "keystore.jks").write_bytes(b"\xfe\xed\xfe\xed\x00\x00")
    (folder / "a:b").write_text(SECRET)
    (folder / "password").chmod(0o600)
    (folder / "open").write_text(SECRET)
    (folder / "open").chmod(0o644)
    (folder / "open.key").write_bytes((folder / "client.key").read_bytes())
    (folder / "open.key").chmod(0o640 | 0o020)
    return folder


@pytest.fixture(autouse=True)
def _among_the_files(pem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pem)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "a cluster without authentication"),
        ({"protocol": "SSL"}, "certificates of a public CA"),
        ({"protocol": "SSL", "ca_file": "ca.pem", "verify_hostname": False}, "a certificate for a different name"),
        ({**MUTUAL, "key_file": "client.key"}, "a key without a password"),
        ({**MUTUAL, "key_file": "locked.key", "key_password": KEY_PASSWORD}, "a key with a password"),
        ({**SCRAM, "password": SECRET}, "by value"),
        ({**SCRAM, "protocol": "SASL_PLAINTEXT", "password_file": "password"}, "a password file in a trusted network"),
        ({**SCRAM, "mechanism": "PLAIN", "password": SECRET}, "many managed clusters"),
        ({**OAUTH, "oauth_client_id": "m", "oauth_client_secret_file": "password", "oauth_scope": "read"}, "tokens"),
    ],
)
def test_settings_that_can_work_are_accepted(given: dict[str, object], why: str) -> None:
    assert SecuritySettings.model_validate(given).protocol == given.get("protocol", "PLAINTEXT"), why


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ca_file": "ca.pem"}, "ca_file has no effect with protocol = 'PLAINTEXT'"),  # rule 1: nothing is encrypted
        ({"verify_hostname": False}, "verify_hostname has no effect with protocol = 'PLAINTEXT'"),
        ({"protocol": "SSL", "mechanism": "PLAIN"}, "mechanism has no effect with protocol = 'SSL'"),
        ({"username": "m"}, "username has no effect with mechanism = None"),
        (
            {**SCRAM, "password": SECRET, "oauth_scope": "x"},
            "oauth_scope has no effect with mechanism = 'SCRAM-SHA-512'",
        ),
        ({"protocol": "SASL_SSL"}, "protocol = 'SASL_SSL' needs a mechanism"),  # rule 2
        (SCRAM, "mechanism = 'SCRAM-SHA-512' needs password or password_file"),
        (OAUTH, "needs oauth_client_id; mechanism = 'OAUTHBEARER' needs oauth_client_secret or oauth_client_secret_f"),
        (
            {**SCRAM, "password": SECRET, "password_file": "password"},
            "password and password_file are both set",
        ),  # rule 3
        (
            {"protocol": "SSL", "ca_file": "nowhere.pem"},
            "the file in this setting (not shown, because it can be a secret): no such file or directory",
        ),  # rule 4
        ({"protocol": "SSL", "ca_file": "/etc/ssl/nowhere.pem"}, "/etc/ssl/nowhere.pem: no such file or directory"),
        ({"protocol": "SSL", "ca_file": "."}, "is a directory"),
        ({"protocol": "SSL", "ca_file": "empty"}, "is empty"),
        ({"protocol": "SSL", "ca_file": "password"}, "contains no PEM certificate"),
        ({"protocol": "SSL", "ca_file": "keystore.jks"}, "use a PEM file, not DER or a Java keystore"),
        (
            {**SCRAM, "password_file": "a:b"},
            "Kafka's Java client does not support a path with a colon or a closing brace",
        ),
        ({**MUTUAL, "key_file": "openssl.key"}, "is not a PKCS#8 key in PEM: convert it with `openssl pkcs8"),  # rule 5
        ({**SCRAM, "password_file": "open"}, "open is accessible to other users (mode 0644): chmod 600"),  # rule 6
        ({**OAUTH, "oauth_client_id": "m", "oauth_client_secret_file": "open"}, "is accessible to other users (mode"),
        ({**MUTUAL, "key_file": "locked.key", "key_password_file": "open"}, "is accessible to other users (mode 0644)"),
        ({**MUTUAL, "key_file": "open.key"}, "is accessible to other users (mode 0660)"),
        (MUTUAL, "certificate_file and key_file belong together"),
        ({**MUTUAL, "key_file": "locked.key"}, "the key in key_file is encrypted, but neither"),  # rule 7
        ({**MUTUAL, "key_file": "client.key", "key_password": "x"}, "but the key in key_file is not encrypted"),
        ({"protocol": "SSL", "key_password": "x"}, "key_password is set without key_file"),
        ({**OAUTH, "oauth_token_endpoint": "ftp://id"}, "should match pattern"),
        ({"protocol": "TLS"}, "Input should be 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT' or 'SASL_SSL'"),
    ],
)
def test_settings_that_cannot_work_are_errors_with_the_reason(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SecuritySettings.model_validate(given)
    assert message in str(refused.value)


def test_a_line_break_at_the_end_of_a_file_is_not_part_of_the_secret() -> None:
    """Editors and `kubectl create secret --from-file` add a line break."""
    by_file = SecuritySettings.model_validate({**SCRAM, "password_file": "password"})
    assert read_secrets(by_file) == Secrets(password=SECRET)


def test_neither_settings_nor_secrets_show_a_secret_when_they_are_printed() -> None:
    """A traceback can contain local variables, and a log line can contain settings."""
    settings = SecuritySettings.model_validate({**SCRAM, "password": SECRET})
    assert SECRET not in f"{settings!r} {settings} {read_secrets(settings)!r} {settings.model_dump()}"


def test_secrets_come_from_the_environment_and_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ps e` shows the environment of the JVM and of every Python worker."""
    variables = {"PROTOCOL": "SASL_SSL", "MECHANISM": "PLAIN", "USERNAME": "monitor", "PASSWORD": SECRET}
    for name, value in variables.items():
        monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}KAFKA__SECURITY__{name}", value)
    security = load_settings(None).kafka.security
    assert read_secrets(security).password == SECRET
    forget_secrets()
    assert [name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)] == []


def test_config_check_shows_each_setting_and_no_secret(tmp_path: Path, pem: Path) -> None:
    """The path of a file with a secret is shown, because it helps to find a wrong secret."""
    file = tmp_path / "monitor.toml"
    file.write_text(
        "[kafka.security]\nprotocol = 'SASL_SSL'\nmechanism = 'PLAIN'\nusername = 'monitor'\npassword = 'hunter2'\n"
        "ca_file = 'ca.pem'\n"
    )
    output = CliRunner().invoke(config, ["check", "--config", str(file)]).output
    assert SECRET not in output
    for line in (
        "[kafka.security]",
        f'password = "{REDACTED}"',
        f'ca_file = "{pem}/ca.pem"',
        "# password_file =",
        "(REBALANCE_MONITOR_KAFKA__SECURITY__KEY_PASSWORD_FILE)",
    ):
        assert line in output


def test_an_error_shows_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text("[kafka.security]\nprotocol = 'SASL_SSL'\npassword = 'hunter2'\nkey_password = ['hunter2']\n")
    result = CliRunner().invoke(config, ["check", "--config", str(file)])
    assert result.exit_code != 0
    assert SECRET not in result.output


def test_a_secret_with_the_group_of_a_pod_is_accepted(tmp_path: Path) -> None:
    """Kubernetes mounts a link to a file of mode 0440 in a hidden folder."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "password").write_text(SECRET)
    (tmp_path / "..data" / "password").chmod(0o440)
    (tmp_path / "password").symlink_to("..data/password")
    by_file = SecuritySettings.model_validate({**SCRAM, "password_file": str(tmp_path / "password")})
    assert read_secrets(by_file) == Secrets(password=SECRET)


def test_on_a_read_only_mount_a_file_open_to_others_is_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes mounts secrets read-only with mode 0644 by default, which the container cannot change."""
    file, settings_file = tmp_path / "password", tmp_path / "monitor.toml"
    file.write_text(SECRET)
    file.chmod(0o644)
    scram = "protocol = 'SASL_PLAINTEXT'\nmechanism = 'PLAIN'\nusername = 'm'\n"
    settings_file.write_text(f"[kafka.security]\n{scram}password_file = '{file}'\n")
    with pytest.raises(ConfigError, match=r"is accessible to other users \(mode 0644\): chmod 600"):
        load_settings(settings_file)
    mount = os.statvfs(file)
    monkeypatch.setattr(
        streaming.config.private_files.os,
        "statvfs",
        lambda _: SimpleNamespace(f_flag=mount.f_flag | os.ST_RDONLY),
    )
    assert load_settings(settings_file).exposed_files() == [file]
    file.chmod(0o440)
    assert load_settings(settings_file).exposed_files() == []
