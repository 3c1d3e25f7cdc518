"""Who may ask on the HTTP port: names, passwords, certificates, and what is refused before it does harm."""

from __future__ import annotations

import base64
from pathlib import Path

import bcrypt
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

import streaming.http.access
from streaming.http.access import AccessError, Certificate, Users, read_users
from tests.streaming.security.pem import write_pem_files

CHEAP = bcrypt.gensalt(4)
SECRET = "correct horse: battery"  # noqa: S105 - of nobody


def hashed(password: str) -> bytes:
    return bcrypt.hashpw(password.encode(), CHEAP)


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


USERS = Users({"prometheus": hashed(SECRET), "ops": hashed("other")})


@pytest.mark.parametrize(
    ("authorization", "admitted", "why"),
    [
        (basic("prometheus", SECRET), True, "name and password; the password has a colon of its own"),
        (basic("prometheus", SECRET).replace("Basic", "bAsIc"), True, "schemes have no case (RFC 9110)"),
        (basic("prometheus", "other"), False, "another user's password"),
        (basic("nobody", SECRET), False, "a name nobody has"),
        (basic("", ""), False, "nothing"),
        (basic("prometheus", ""), False, "no password"),
        (basic("prometheus", "x" * 100), False, "longer than bcrypt takes"),
        (basic("prometheus", "a\0b"), False, "a zero byte"),
        (None, False, "no header"),
        ("", False, "an empty one"),
        ("Basic", False, "nothing after the scheme"),
        ("Basic %%%", False, "no base64"),
        ("Basic " + base64.b64encode(b"no-colon").decode(), False, "no colon"),
        ("Basic " + base64.b64encode(b"\xff\xfe:\xff").decode(), False, "no UTF-8"),
        ("Bearer " + base64.b64encode(f"prometheus:{SECRET}".encode()).decode(), False, "another scheme"),
    ],
)
def test_only_a_name_with_its_password_is_admitted(authorization: str | None, admitted: bool, why: str) -> None:
    assert USERS.admits(authorization) == admitted, why


@given(st.text())
def test_no_header_whatever_is_in_it_breaks_the_door(authorization: str) -> None:
    assert not USERS.admits(authorization)


def test_a_pair_that_was_right_costs_nothing_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape every few seconds would otherwise pay a tenth of a second for each."""
    users, tried = Users({"prometheus": hashed(SECRET)}), []
    really = bcrypt.checkpw
    monkeypatch.setattr(streaming.http.access.bcrypt, "checkpw", lambda *pair: tried.append(pair) or really(*pair))
    assert [users.admits(basic("prometheus", SECRET)) for _ in range(3)] == [True] * 3
    assert len(tried) == 1
    assert [users.admits(basic("prometheus", "wrong")) for _ in range(3)] == [False] * 3
    assert len(tried) == 4, "what was wrong is tried anew: nothing wrong is kept"
    assert not users.admits(basic("nobody", "wrong"))
    assert len(tried) == 5, "a name nobody has costs the same"


def test_an_unknown_name_costs_what_a_known_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """`htpasswd -B` uses cost 5 and the dummy had cost 10: 3 ms for a known name and 291 ms for any other."""
    tried: list[bytes] = []
    monkeypatch.setattr(streaming.http.access.bcrypt, "checkpw", lambda _, expected: bool(tried.append(expected)))
    for costs in ((5,), (4, 12), (12, 4, 4)):
        hashes = {f"user{place}": b"$2y$%02d$" % cost + b"x" * 53 for place, cost in enumerate(costs)}
        tried.clear()
        for number in range(100):
            assert not Users(hashes).admits(basic(f"nobody{number}", "wrong"))
        assert len(tried) == 100, "one hash for each"
        assert {expected[:7] for expected in tried} == {expected[:7] for expected in hashes.values()}
        first, again = Users(hashes), Users(dict(reversed(hashes.items())))
        tried.clear()
        for users in (first, first, again):
            assert not users.admits(basic("nobody", "wrong"))
        assert len(set(tried)) == 1, "a name that costs now this, now that, is nobody's"


def test_the_cost_of_an_unknown_name_is_really_paid() -> None:
    """Bcrypt refuses a hash that is none at once."""
    users = Users({"prometheus": hashed(SECRET)})
    decoy = users._decoy(b"nobody")
    assert not bcrypt.checkpw(b"wrong", decoy)
    assert decoy[:7] == hashed(SECRET)[:7]


def test_name_and_password_are_kept_apart_in_what_is_remembered() -> None:
    users = Users({"a\0b": hashed("c")})
    assert users.admits(basic("a\0b", "c"))
    assert not users.admits(basic("a", "b\0c"))


def users_file(folder: Path, text: str, mode: int = 0o600) -> str:
    file = folder / "users"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_a_users_file_is_as_htpasswd_writes_it(tmp_path: Path) -> None:
    line = "prometheus:" + hashed(SECRET).decode().replace("$2b$", "$2y$")
    users = read_users(users_file(tmp_path, f"# who may scrape\n\n{line}\n"))
    assert users.admits(basic("prometheus", SECRET))
    assert not users.admits(basic("# who may scrape", ""))


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", 0o600, "contains no user"),
        ("# nobody yet\n", 0o600, "contains no user"),
        ("prometheus:plain-text\n", 0o600, "line 1 is not NAME:BCRYPT-HASH"),
        ("a:{good}\nb:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n", 0o600, "line 2 is not NAME:BCRYPT-HASH"),
        (":{good}\n", 0o600, "line 1 is not NAME"),
        ("prometheus\n", 0o600, "line 1 is not NAME"),
        ("prometheus:{good}x\n", 0o600, "line 1 is not NAME"),
        ("prometheus:{good}\n", 0o644, "is open to others (mode 0644): chmod 600"),
        ("prometheus:{good}\n", 0o660, "is open to others (mode 0660): chmod 600"),
    ],
)
def test_a_users_file_that_guards_badly_is_refused(tmp_path: Path, text: str, mode: int, said: str) -> None:
    """Rules 1 and 2; the message names the remedy and never the hash."""
    file = users_file(tmp_path, text.replace("{good}", hashed(SECRET).decode()), mode)
    with pytest.raises(AccessError) as refused:
        read_users(file)
    assert said in str(refused.value)
    assert "$" not in str(refused.value)


def test_a_group_may_read_the_file(tmp_path: Path) -> None:
    """Kubernetes mounts a secret for a pod's group: 0440."""
    assert read_users(users_file(tmp_path, f"a:{hashed(SECRET).decode()}\n", 0o440)).admits(basic("a", SECRET))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="no-such cannot be read"):
        read_users(str(tmp_path / "no-such"))


def pem_files(folder: Path, host: str = "127.0.0.1", authority: trustme.CA | None = None) -> tuple[str, str]:
    """Write a certificate and its key."""
    issued = (authority or trustme.CA()).issue_cert(host)
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    key.chmod(0o600)
    return str(certificate), str(key)


def test_files_that_are_no_certificate_and_key_are_refused(tmp_path: Path) -> None:
    certificate, key = pem_files(tmp_path)
    with pytest.raises(AccessError, match="are not a certificate and its key"):
        Certificate(key, key)
    Path(key).chmod(0o604)
    with pytest.raises(AccessError, match="chmod 600"):
        Certificate(certificate, key)
    with pytest.raises(AccessError, match="nowhere cannot be read"):
        Certificate(certificate, str(tmp_path / "nowhere"))


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(tmp_path: Path) -> None:
    """OpenSSL asks at the terminal: without one the start failed, with one it waited, and so did a renewal."""
    write_pem_files(tmp_path, trustme.CA())
    with pytest.raises(AccessError, match="the key is encrypted"):
        Certificate(str(tmp_path / "client.pem"), str(tmp_path / "locked.key"))


def test_a_new_certificate_with_the_old_key_leaves_the_old_pair_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Loaded into the context in use, the certificate replaced the old one before its key was found not to fit."""
    caplog.set_level("INFO", "streaming.http.access")
    certificate_file, key_file = pem_files(tmp_path)
    certificate = Certificate(certificate_file, key_file)
    old = certificate.context()
    (tmp_path / "renewed").mkdir()
    renewed, renewed_key = pem_files(tmp_path / "renewed")
    Path(renewed).replace(certificate_file)
    assert [certificate.context() is old for _ in range(3)] == [True] * 3
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "the renewed certificate cannot be used, the old one stays in use"
    ], "once, not at every connection"
    Path(renewed_key).replace(key_file)
    assert certificate.context() is not old
    assert caplog.records[-1].message == "the certificate of the HTTP port was renewed"
