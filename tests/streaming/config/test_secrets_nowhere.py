"""Test that no output shows a secret, with a secret in every setting that can contain one."""

from __future__ import annotations

import doctest
import html
import io
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, quote_plus, unquote

import pytest
from click.testing import CliRunner
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import streaming.config.environment
import streaming.config.redactor
import streaming.config.refusals
import streaming.config.secret_settings
from assignors.model import AssignorFailedError, GroupSpec, MemberSubscription
from streaming.child_process import ChildProcess
from streaming.cli import main
from streaming.cli.config import config
from streaming.cli.text.logs import redact, redact_standard_error
from streaming.config.environment import ENVIRONMENT_PREFIX, is_setting, without_settings
from streaming.config.load import ConfigError, Settings, create_redactor, forget_secrets, load_settings
from streaming.config.redactor import Redactor
from streaming.custom.guarded_assignor import GuardedAssignor
from streaming.spark.launch.conf import launch_conf, session_conf

MARKER = "Zq7hunter2"
SECRETS = st.tuples(*[st.text("abXY01/:@?&=+#%;.-~ '\"\\é€\n", max_size=6)] * 2).map(
    lambda ends: f"x{ends[0]}{MARKER}{ends[1]}y"
)
"""Secrets that contain separators of URIs, quotes, backslashes and letters that are not ASCII."""

Document = dict[str, object]
SASL: Document = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "monitor"}
TLS: Document = {"protocol": "SSL"}
OAUTH: Document = {
    "protocol": "SASL_SSL",
    "mechanism": "OAUTHBEARER",
    "oauth_token_endpoint": "https://id/token",
    "oauth_client_id": "monitor",
}
ADDRESS: Document = {"bootstrap_servers": "b:1"}
CONF_NAMES = (
    "spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.container.mine",
    "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.javax.jdo.option.ConnectionURL",
    "spark.executorEnv.ANYTHING",
    "spark.sql.catalog.lake.credential",
    "spark.ssl.keyPassword",
    "anything.else",
)
ADDRESS_NAMES = ("spark.eventLog.dir", "spark.hadoop.fs.s3a.endpoint", "spark.sql.warehouse.dir")
"""Properties whose values are shown without their credentials."""


def uri(secret: str) -> str:
    return f"s3a://AKIA:{secret}@bucket/folder"


@st.composite
def documents(draw: st.DrawFn, secrets: st.SearchStrategy[str] = SECRETS) -> Document:
    """Draw valid settings with a secret in some of them."""
    secret = draw(secrets)
    by_password: Document = {**SASL, "password": secret}
    in_path = secret.replace("@", "").replace("\n", "")
    endpoint = draw(st.sampled_from((f"https://id/t#{in_path}", f"https://id/t;key={in_path}", "https://id/t")))
    by_token: Document = {**OAUTH, "oauth_client_secret": secret, "oauth_token_endpoint": endpoint}
    security = st.sampled_from((by_password, by_token))
    names = draw(st.sets(st.sampled_from(CONF_NAMES), max_size=4))
    conf: Document = {name: draw(st.sampled_from((secret, uri(secret)))) for name in sorted(names)}
    addresses = (
        uri(secret),
        f"https://h/x#sig={secret}",
        f"h:9000;token={secret}",
        f"AKIA:{secret}@h",
        f"h?k={secret}",
    )
    conf |= {name: draw(st.sampled_from(addresses)) for name in ADDRESS_NAMES}
    optional: dict[str, Document] = {
        "kafka": {"security": draw(security)},
        "clusters": {"eu": {**ADDRESS, "security": draw(security), "checkpoint": f"{uri(secret)}/eu"}},
        "spark": {"conf": conf},
        "paths": {"checkpoint": f"{uri(secret)}/checkpoint", "tables": f"{uri(secret)}/tables?sig={secret}"},
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional)), min_size=1))
    return {"kafka": {"cluster": "prod"}} | {name: optional[name] for name in sorted(chosen)}


@contextmanager
def given_as(document: Document, way: str) -> Iterator[Path]:
    """Provide settings by a file, by one variable per section (JSON), or by one variable per value."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name in filter(is_setting, list(os.environ)):
            patch.delenv(name)
        file = Path(folder, "monitor.toml")
        file.write_text(toml(document) if way == "file" else "")
        for name, value in variables(document, deep=way == "variables").items() if way != "file" else ():
            patch.setenv(name, value)
        yield file


def toml(document: Document) -> str:
    return "\n".join(f"{name} = {_inline(value)}" for name, value in document.items())


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_inline(inner)}" for name, inner in value.items()) + "}"
    return json.dumps(value)


def variables(document: Document, *, deep: bool, prefix: str = ENVIRONMENT_PREFIX) -> dict[str, str]:
    environment: dict[str, str] = {}
    for name, value in document.items():
        variable = f"{prefix}{name}".upper()
        if isinstance(value, dict) and deep and name != "conf":
            environment |= variables(value, deep=deep, prefix=f"{variable}__")
        else:
            environment[variable] = value if isinstance(value, str) else json.dumps(value)
    return environment


def standard_error(loaded: Settings, lines: list[str]) -> str:
    """Return what a run with these settings writes to standard error: log lines, an error and a traceback."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook)
    root.addHandler(handler)
    try:
        redact_standard_error(create_redactor(loaded))
        for line in lines:
            root.error("it failed: %s", line)
            root.error("it failed", exc_info=OSError(f"no such bucket: {line}"))
        return stream.getvalue() + "".join(map(redact, lines))
    finally:
        root.removeHandler(handler)
        redact_standard_error(Redactor())
        sys.excepthook, threading.excepthook = hooks


def spark_page(conf: Mapping[str, str]) -> str:
    """Return the settings as Spark shows them. Spark hides a value if its name or the value matches a pattern."""
    hidden = re.compile(conf["spark.redaction.regex"])
    names = {name: name.removeprefix("spark.hadoop.") for name in conf if name != "spark.redaction.regex"}
    return str(
        [(name, conf[name]) for name in names if not hidden.search(names[name]) and not hidden.search(conf[name])]
    )


def texts(value: object) -> Iterator[str]:
    """Return every text in a document, as a log line could contain it."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def spellings(text: str) -> Iterator[str]:
    """Return a text as libraries write it: as it is, decoded, and with each kind of escaping."""
    for one in {text, unquote(text)}:
        yield from (one, repr(one), repr(f"it's {one}"), ascii(one), json.dumps(one), json.dumps(json.dumps(one)))
        yield from (json.dumps(one, ensure_ascii=False), repr(one.encode()), str(OSError(2, "no such file", one)))
        yield from (quote(one), quote(one, safe=""), quote_plus(one), quote(one).lower(), quote(quote(one)))
        yield html.escape(one)


@pytest.mark.parametrize("way", ["file", "json", "variables"])
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(document=documents())
def test_a_secret_is_shown_nowhere(way: str, document: Document) -> None:
    """`config check` once printed account keys and `s3a://AKIA:ab/cd@bucket`. Children inherited settings in JSON."""
    with given_as(document, way) as file:
        loaded = load_settings(file)
        checked = CliRunner().invoke(config, ["check", "--config", str(file)])
        assert checked.exit_code == 0
        children = without_settings(os.environ)
        forget_secrets()
        spark = session_conf(loaded.spark, [], Path("/of/this/run"), submitted=False)
        for place, text in {
            "config check": checked.output,
            "repr": f"{loaded!r} {loaded} {loaded.of_clusters()!r} {loaded.spark!r} {loaded.paths}",
            "environment of children": str(children),
            "environment left to libraries": str(dict(os.environ)),
            "command line of the JVM": str(launch_conf(spark, loaded.spark.conf)),
            "Spark's pages": spark_page(spark),
            "standard error": standard_error(loaded, sorted({*texts(document)})),
            "standard error, escaped": standard_error(
                loaded, [spelled for one in sorted({*texts(document)}) for spelled in spellings(one)]
            ),
        }.items():
            assert MARKER not in text, place


BREAKS: list[Document] = [
    {"metrics": {"port": -1}},
    {"metrics": "text"},
    {"tables": {"nothing": MARKER}},
    {"kafka": {"bootstrap_servers": f"me:{MARKER}@broker"}},
    {"kafka": {"bootstrap_servers": f"sasl://me:{MARKER}/x@broker:9092"}},
    {"kafka": {"bootstrap_servers": f"me/{MARKER}"}},
    {"kafka": {"bootstrap_servers": f"b:1,me:{MARKER}"}},
    {"kafka": {"bootstrap_servers": f"b;key={MARKER}:9092"}},
    {"kafka": {"security": MARKER}},
    {"kafka": {"security": {"protocol": MARKER}}},
    {"kafka": {"security": {"ca_file": f"s3a://me:{MARKER}@bucket/ca.pem"}}},
    {"kafka": {"security": {"password": MARKER}}},
    {"kafka": {"security": {**SASL, "password": [MARKER]}}, "metrics": {"port": MARKER[:0]}},
    {"kafka": {"security": {**SASL, "passwort": MARKER}}},
    {"kafka": {"security": {**OAUTH, "oauth_token_endpoint": f"https://me:{MARKER}@id/token"}}},
    {"kafka": {"security": {**OAUTH, "oauth_token_endpoint": f"ftp://me:{MARKER}@id/token"}}},
    {"kafka": {"security": {**OAUTH, "oauth_token_endpoint": f"id/t?client_secret={MARKER}"}}},
    *(
        {"kafka": {"security": {**security, name: text}}}
        for name, security in {
            "password_file": SASL,
            "oauth_client_secret_file": OAUTH,
            "key_file": TLS,
            "key_password_file": TLS,
            "certificate_file": TLS,
            "ca_file": TLS,
        }.items()
        for text in (MARKER, f"/{MARKER}", f"-----BEGIN PRIVATE KEY-----\nMII/{MARKER}\n" + 300 * "x")
    ),
    {"clusters": {"eu": MARKER}},
    {
        "clusters": {
            "eu": {"bootstrap_servers": "b:1", "security": {**SASL, "password": MARKER, "key_password": MARKER}}
        }
    },
    {
        "clusters": {"eu": {"bootstrap_servers": "b:1", "checkpoint": f"{uri(MARKER)}/c"}},
        "paths": {"tables": uri(MARKER)},
    },
    {"paths": {"checkpoint": uri(MARKER), "tables": f"{uri(MARKER)}/tables"}},
    {"paths": {"checkpoint": f"s3a:AKIA:{MARKER}@bucket/tables"}},
    {"paths": {"tables": f"s3a:/AKIA:{MARKER}@bucket/tables"}},
    {"links": {"grafana_url": f"https://me:{MARKER}@grafana"}},
    {"links": {"grafana_url": f"https://grafana/d#access_token={MARKER}"}},
    {"links": {"grafana_url": f"https://grafana/d;access_token={MARKER}"}},
    {"links": {"prometheus_url": f"prometheus?token={MARKER}"}},
    {"spark": {"conf": {"spark.hadoop.x": [MARKER]}}},
    {"spark": {"conf": MARKER}},
    {"spark": MARKER},
    {"spark": {"master": f"spark://me:{MARKER}@host:7077"}},
    {"spark": {"master": f"k8s://https://host?token={MARKER}"}},
    {"spark": {"conf": {"spark.files": f"https://host/ca.pem#sig={MARKER}"}}},
    {"spark": {"conf": {"spark.jars.repositories": f"me:{MARKER}@nexus/maven"}}},
    {"spark": {"conf": {"spark.jars.repositories": f"https://one,https://me:{MARKER}@nexus/maven"}}},
    {"spark": {"conf": {"spark.files": f"https://host/ca.pem?sig={MARKER}"}}},
]


@pytest.mark.parametrize("way", ["file", "json", "variables"])
@pytest.mark.parametrize("broken", BREAKS, ids=map(str, range(len(BREAKS))))
def test_a_secret_is_in_no_error(way: str, broken: Document) -> None:
    """Errors are copied from terminals and logs into tickets."""
    with given_as(broken, way) as file:
        with pytest.raises(ConfigError) as refused:
            load_settings(file)
        assert refused.value.__suppress_context__, "otherwise a traceback shows the original error with the values"
        checked = CliRunner().invoke(config, ["check", "--config", str(file)])
    assert checked.exit_code != 0
    assert MARKER not in f"{refused.value} {checked.output}"


@pytest.mark.parametrize(
    "metrics",
    [
        {"basic_auth_users_file": f"admin:{MARKER}"},
        {"tls_certificate_file": "/etc/hostname", "tls_key_file": f"-----BEGIN PRIVATE KEY-----\n{MARKER}"},
        {"tls_certificate_file": MARKER, "tls_key_file": "key.pem"},
    ],
    ids=["users", "key", "certificate"],
)
def test_a_secret_instead_of_the_path_of_a_file_of_the_port_is_not_shown(
    metrics: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message contained the text as the path of a missing file, also a whole private key."""
    monkeypatch.chdir(tmp_path)
    Path("key.pem").write_text("")
    Path("key.pem").chmod(0o600)
    with given_as({"metrics": metrics}, "file") as file:
        checked = CliRunner().invoke(config, ["check", "--config", str(file)])
    assert checked.exit_code != 0
    assert "the file in metrics." in checked.output
    assert MARKER not in checked.output


@pytest.mark.parametrize("command", ["history", "what-if"])
def test_a_secret_is_in_no_error_of_a_command(command: str, tmp_path: Path) -> None:
    """Commands that read the tables once printed the folder as it is in the settings."""
    file = tmp_path / "monitor.toml"
    file.write_text(f"[paths]\ntables = 'file://me:{MARKER}@host{tmp_path}'")
    try:
        result = CliRunner().invoke(main, [command, "some-group", "--config", str(file)])
    finally:
        redact_standard_error(Redactor())
    assert result.exit_code == 1
    assert "table" in result.output
    assert MARKER not in result.output


@pytest.mark.parametrize(
    "text", ["[kafka.security]\npassword = '{}", "{}", "[kafka]\npassword = '{}'\npassword = '{}'"]
)
def test_a_secret_is_in_no_error_of_an_invalid_toml_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text(text.replace("{}", MARKER))
    with pytest.raises(ConfigError) as refused:
        load_settings(file)
    assert MARKER not in str(refused.value)


class EnvironmentPrinter:
    """A strategy that fails with its environment variables as the error message."""

    name = "prints"

    def assign(self, _: GroupSpec) -> None:
        """Raise RuntimeError with the environment variables."""
        raise RuntimeError(str(sorted(os.environ)))


def test_no_child_process_inherits_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own strategy could send its environment to any place."""
    by_json = {"eu": {"bootstrap_servers": "b:1", "security": {**SASL, "password": MARKER}}}
    monkeypatch.setenv("REBALANCE_MONITOR_CLUSTERS", json.dumps(by_json))
    monkeypatch.setenv("rebalance_monitor_kafka__security__password", MARKER)
    monkeypatch.setenv("OF_THE_STRATEGY", "stays")
    child = ChildProcess(["env"], tmp_path / "output")
    assert child.wait(30)
    with (
        closing(GuardedAssignor(f"{__name__}:EnvironmentPrinter")) as guarded,
        pytest.raises(AssignorFailedError) as failure,
    ):
        guarded.assign(GroupSpec((MemberSubscription("A", ("t",)),), {"t": 1}))
    for environment in (child.output.read_text(), str(failure.value)):
        assert MARKER not in environment
        assert "rebalance_monitor_" not in environment.lower()
        assert "OF_THE_STRATEGY" in environment


@pytest.mark.parametrize(
    "module",
    [
        streaming.config.environment,
        streaming.config.secret_settings,
        streaming.config.redactor,
        streaming.config.refusals,
    ],
)
def test_the_examples_in_the_docstrings_are_true(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
