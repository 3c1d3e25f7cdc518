"""Tests of access to the HTTP port: users, passwords, certificates and refused files."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import bcrypt
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

import streaming.http.access
from streaming.config.settings import MetricsSettings
from streaming.http.access import AccessError, Reloaded, Users, read_access, read_users
from tests.streaming.security.pem import write_pem_files

CHEAP = bcrypt.gensalt(4)
SECRET = "correct horse: battery"  # noqa: S105 - only for tests


def hash_password(password: str) -> bytes:
    return bcrypt.hashpw(password.encode(), CHEAP)


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


USERS = Users({"prometheus": hash_password(SECRET), "ops": hash_password("other")})


@pytest.mark.parametrize(
    ("authorization", "is_admitted", "why"),
    [
        (basic("prometheus", SECRET), True, "name and password, and the password contains a colon"),
        (basic("prometheus", SECRET).replace("Basic", "bAsIc"), True, "schemes are case-insensitive (RFC 9110)"),
        (basic("prometheus", "other"), False, "the password of a different user"),
        (basic("nobody", SECRET), False, "an unknown user"),
        (basic("", ""), False, "empty name and password"),
        (basic("prometheus", ""), False, "no password"),
        (basic("prometheus", "x" * 100), False, "longer than bcrypt's limit"),
        (basic("prometheus", "a\0b"), False, "a zero byte"),
        (None, False, "no header"),
        ("", False, "an empty header"),
        ("Basic", False, "only the scheme"),
        ("Basic %%%", False, "invalid base64"),
        ("Basic " + base64.b64encode(b"no-colon").decode(), False, "no colon"),
        ("Basic " + base64.b64encode(b"\xff\xfe:\xff").decode(), False, "invalid UTF-8"),
        ("Bearer " + base64.b64encode(f"prometheus:{SECRET}".encode()).decode(), False, "a different scheme"),
    ],
)
def test_only_a_name_with_its_password_is_admitted(authorization: str | None, is_admitted: bool, why: str) -> None:
    assert USERS.admits(authorization) == is_admitted, why


@given(st.text())
def test_any_header_is_refused_without_an_error(authorization: str) -> None:
    assert not USERS.admits(authorization)


def test_a_correct_password_is_hashed_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each scrape would spend a tenth of a second on the hash."""
    users, tried = Users({"prometheus": hash_password(SECRET)}), []
    original = bcrypt.checkpw
    monkeypatch.setattr(streaming.http.access.bcrypt, "checkpw", lambda *pair: tried.append(pair) or original(*pair))
    assert [users.admits(basic("prometheus", SECRET)) for _ in range(3)] == [True] * 3
    assert len(tried) == 1
    assert [users.admits(basic("prometheus", "wrong")) for _ in range(3)] == [False] * 3
    assert len(tried) == 4, "a wrong password is not remembered, so it is hashed each time"
    assert not users.admits(basic("nobody", "wrong"))
    assert len(tried) == 5, "an unknown user also costs one hash"


def test_an_unknown_user_costs_as_much_time_as_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`htpasswd -B` uses cost 5, and the decoy hash had cost 10. A known name took 3 ms, an unknown one 291 ms."""
    tried: list[bytes] = []
    monkeypatch.setattr(streaming.http.access.bcrypt, "checkpw", lambda _, expected: bool(tried.append(expected)))
    for costs in ((5,), (4, 12), (12, 4, 4)):
        hashes = {f"user{place}": b"$2y$%02d$" % cost + b"x" * 53 for place, cost in enumerate(costs)}
        tried.clear()
        for number in range(100):
            assert not Users(hashes).admits(basic(f"nobody{number}", "wrong"))
        assert len(tried) == 100, "one hash per request"
        assert {expected[:7] for expected in tried} == {expected[:7] for expected in hashes.values()}
        first, again = Users(hashes), Users(dict(reversed(hashes.items())))
        tried.clear()
        for users in (first, first, again):
            assert not users.admits(basic("nobody", "wrong"))
        assert len(set(tried)) == 1, "a changing cost would reveal an unknown name"


def test_the_decoy_hash_of_an_unknown_user_is_valid() -> None:
    """Bcrypt refuses an invalid hash at once, without computing it."""
    users = Users({"prometheus": hash_password(SECRET)})
    decoy = users._decoy(b"nobody")
    assert not bcrypt.checkpw(b"wrong", decoy)
    assert decoy[:7] == hash_password(SECRET)[:7]


def test_remembered_pairs_keep_name_and_password_apart() -> None:
    users = Users({"a\0b": hash_password("c")})
    assert users.admits(basic("a\0b", "c"))
    assert not users.admits(basic("a", "b\0c"))


def users_file(folder: Path, text: str, mode: int = 0o600) -> str:
    file = folder / "users"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_a_users_file_of_htpasswd_is_read(tmp_path: Path) -> None:
    line = "prometheus:" + hash_password(SECRET).decode().replace("$2b$", "$2y$")
    users = read_users(users_file(tmp_path, f"# who may scrape\n\n{line}\n"))
    assert users.admits(basic("prometheus", SECRET))
    assert not users.admits(basic("# who may scrape", ""))


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("", 0o600, "contains no user"),
        ("# nobody yet\n", 0o600, "contains no user"),
        ("prometheus:plain-text\n", 0o600, "line 1 is not NAME:BCRYPT-HASH"),
        ("a:{good}\nb:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n", 0o600, "line 2 is not NAME:BCRYPT-HASH"),
        (":{good}\n", 0o600, "line 1 is not NAME"),
        ("prometheus\n", 0o600, "line 1 is not NAME"),
        ("prometheus:{good}x\n", 0o600, "line 1 is not NAME"),
        ("prometheus:{good}\n", 0o644, "is accessible to other users (mode 0644): chmod 600"),
        ("prometheus:{good}\n", 0o660, "is accessible to other users (mode 0660): chmod 600"),
    ],
)
def test_an_insecure_users_file_is_refused(tmp_path: Path, text: str, mode: int, message: str) -> None:
    """Rules 1 and 2. The message has the remedy and never the hash."""
    file = users_file(tmp_path, text.replace("{good}", hash_password(SECRET).decode()), mode)
    with pytest.raises(AccessError) as refused:
        read_users(file)
    assert message in str(refused.value)
    assert "$" not in str(refused.value)


def test_the_users_file_may_be_readable_for_its_group(tmp_path: Path) -> None:
    """Kubernetes mounts a secret with mode 0440, readable for the group of the pod."""
    assert read_users(users_file(tmp_path, f"a:{hash_password(SECRET).decode()}\n", 0o440)).admits(basic("a", SECRET))


def test_the_error_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="no-such cannot be read"):
        read_users(str(tmp_path / "no-such"))


def pem_files(folder: Path, host: str = "127.0.0.1", authority: trustme.CA | None = None) -> tuple[str, str]:
    """Write a certificate and its key, and return their paths."""
    issued = (authority or trustme.CA()).issue_cert(host)
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    key.chmod(0o600)
    return str(certificate), str(key)


def read_certificate(certificate_file: str, key_file: str) -> Reloaded[ssl.SSLContext]:
    """Return the certificate of a port with these settings."""
    settings = MetricsSettings(tls_certificate_file=certificate_file, tls_key_file=key_file)
    certificate = read_access(settings).certificate
    assert certificate is not None
    return certificate


def test_files_that_are_not_a_certificate_and_its_key_are_refused(tmp_path: Path) -> None:
    certificate, key = pem_files(tmp_path)
    with pytest.raises(AccessError, match="are not a certificate and its key"):
        read_certificate(key, key)
    Path(key).chmod(0o604)
    with pytest.raises(AccessError, match="chmod 600"):
        read_certificate(certificate, key)
    with pytest.raises(AccessError, match="nowhere cannot be read"):
        read_certificate(certificate, str(tmp_path / "nowhere"))


def test_an_encrypted_key_is_refused_without_a_password_prompt(tmp_path: Path) -> None:
    """OpenSSL asks for the password at the terminal.

    Without a terminal the start failed, and with one it waited. A renewal did the same.
    """
    write_pem_files(tmp_path, trustme.CA())
    with pytest.raises(AccessError, match="the key is encrypted"):
        read_certificate(str(tmp_path / "client.pem"), str(tmp_path / "locked.key"))


def set_settle_seconds(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(streaming.http.access, "SETTLE_SECONDS", seconds)


def test_a_new_certificate_with_the_old_key_leaves_the_old_pair_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new certificate was loaded into the active context before its key was checked."""
    set_settle_seconds(monkeypatch, 0)
    caplog.set_level("INFO", "streaming.http.access")
    certificate_file, key_file = pem_files(tmp_path)
    certificate = read_certificate(certificate_file, key_file)
    old = certificate.current()
    (tmp_path / "renewed").mkdir()
    renewed, renewed_key = pem_files(tmp_path / "renewed")
    Path(renewed).replace(certificate_file)
    assert [certificate.current() is old for _ in range(3)] == [True] * 3
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "the renewed certificate cannot be used. The old certificate stays in use"
    ], "the warning is logged once, not for every connection"
    Path(renewed_key).replace(key_file)
    assert certificate.current() is not old
    assert caplog.records[-1].message == "the certificate of the HTTP port was renewed"


def test_a_half_written_chain_leaves_the_old_pair_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 5: between two certificates of the chain, the file was valid. Clients then got an incomplete chain."""
    certificate_file, key_file = pem_files(tmp_path)
    certificate = read_certificate(certificate_file, key_file)
    old = certificate.current()
    (tmp_path / "renewed").mkdir()
    renewed, renewed_key = pem_files(tmp_path / "renewed", authority=trustme.CA().create_child_ca())
    Path(renewed_key).replace(key_file)
    lines = Path(renewed).read_text().splitlines(keepends=True)
    assert lines.count("-----END CERTIFICATE-----\n") == 2
    for end in range(len(lines) + 1):
        set_settle_seconds(monkeypatch, 600)
        Path(certificate_file).write_text("".join(lines[:end]))
        assert certificate.current() is old, f"line {end}"
        if not "".join(lines[:end]).endswith("-----END CERTIFICATE-----\n"):
            set_settle_seconds(monkeypatch, 0)
            assert certificate.current() is old, f"line {end}"
    set_settle_seconds(monkeypatch, 0)
    assert certificate.current() is not old


def test_a_certificate_that_changes_while_it_is_loaded_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 5: the loaded certificate can have the chain of one file and the end of another."""
    set_settle_seconds(monkeypatch, 0)
    certificate_file, key_file = pem_files(tmp_path)
    certificate = read_certificate(certificate_file, key_file)
    old = certificate.current()
    pem_files(tmp_path)
    load, changes = streaming.http.access._load_context, ["a comment\n", ""]

    def load_during_a_change(*files: str) -> object:
        loaded = load(*files)
        Path(certificate_file).write_text(Path(certificate_file).read_text() + changes.pop(0))
        return loaded

    monkeypatch.setattr(certificate, "_load", load_during_a_change)
    assert certificate.current() is old
    monkeypatch.setattr(certificate, "_load", load)
    assert certificate.current() is not old


@pytest.mark.parametrize("vanishing", ["cert.pem", "key.pem"])
def test_a_file_that_vanishes_during_a_renewal_leaves_the_old_pair_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vanishing: str
) -> None:
    set_settle_seconds(monkeypatch, 0)
    certificate_file, key_file = pem_files(tmp_path)
    certificate = read_certificate(certificate_file, key_file)
    old = certificate.current()
    check = streaming.http.access._check_private

    def check_and_remove(file: str, setting: str) -> None:
        check(file, setting)
        (tmp_path / vanishing).unlink(missing_ok=True)

    for when in ("before the check", "between the check and the load"):
        pem_files(tmp_path)
        if when == "before the check":
            (tmp_path / vanishing).unlink()
        else:
            monkeypatch.setattr(streaming.http.access, "_check_private", check_and_remove)
        assert certificate.current() is old, when
        assert certificate.current() is old, when
        monkeypatch.setattr(streaming.http.access, "_check_private", check)
    pem_files(tmp_path)
    assert certificate.current() is not old


def test_a_key_gets_its_mode_after_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `cp key.pem ... && chmod 600`, the new key was never used. The time of the content did not change."""
    set_settle_seconds(monkeypatch, 0)
    certificate_file, key_file = pem_files(tmp_path)
    certificate = read_certificate(certificate_file, key_file)
    old = certificate.current()
    pem_files(tmp_path)
    Path(key_file).chmod(0o644)
    assert certificate.current() is old
    Path(key_file).chmod(0o600)
    assert certificate.current() is not old


def test_a_changed_users_file_is_used_without_a_restart_and_a_bad_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removed user still had access until the next restart."""
    set_settle_seconds(monkeypatch, 0)
    caplog.set_level("INFO", "streaming.http.access")

    def write(name: str, mode: int = 0o600) -> None:
        users_file(tmp_path, f"{name}:{hash_password(SECRET).decode()}\n", mode)

    write("old")
    users = read_access(MetricsSettings(basic_auth_users_file=str(tmp_path / "users"))).users
    assert users is not None
    assert users.current().admits(basic("old", SECRET))
    write("new")
    assert [users.current().admits(basic(name, SECRET)) for name in ("old", "new")] == [False, True]
    for damage in (
        lambda: write("bad", 0o644),
        lambda: users_file(tmp_path, "bad:plain\n"),
        (tmp_path / "users").unlink,
    ):
        caplog.clear()
        damage()
        assert [users.current().admits(basic(name, SECRET)) for name in ("bad", "new", "new")] == [False, True, True]
        assert [record.message.partition(":")[0] for record in caplog.records] == [
            "the renewed users file cannot be used. The old users file stays in use"
        ]
    write("old")
    assert users.current().admits(basic("old", SECRET))
