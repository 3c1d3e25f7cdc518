"""Test the settings: the environment overrides the file, all errors are reported together, no secret is shown."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from assignors import BUILT_IN
from streaming.cli.config import config
from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import ConfigError, Settings, load_settings
from streaming.config.secret_settings import REDACTED, hide_secrets, is_harmless
from streaming.config.section import Section
from streaming.config.security import SecuritySettings
from streaming.config.types.durations import LONGEST_DAYS
from streaming.delta.cells import utc


def errors(file: Path | None) -> list[str]:
    """Return the lines of the error that the settings raise."""
    with pytest.raises(ConfigError) as raised:
        load_settings(file)
    return str(raised.value).splitlines()


def test_without_a_file_the_defaults_use_a_broker_on_this_machine() -> None:
    settings = load_settings(None)
    assert settings.kafka.bootstrap_servers == "localhost:9092"
    assert (settings.metrics.host, settings.metrics.port) == ("127.0.0.1", 9560)
    assert settings.source.trigger_seconds == 2
    assert set(settings.evaluation.strategies) == set(BUILT_IN)


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('[kafka]\ncluster = "file"\nbootstrap_servers = "file:1"\n[metrics]\nport = 7\n')
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__CLUSTER", "environment")
    settings = load_settings(file)
    assert settings.kafka.cluster == "environment"
    assert settings.kafka.bootstrap_servers == "file:1", "other settings of the section come from the file"
    assert settings.metrics.port == 7
    assert settings.metrics.host == "127.0.0.1"


EVERY = [
    (section, key)
    for section, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
    for key in field.annotation.model_fields
] + [("kafka__security", key) for key in SecuritySettings.model_fields]


ANY_TEXT = {
    ("kafka", "cluster"),
    ("metrics", "groups_allow"),
    ("metrics", "groups_deny"),
    ("metrics", "topics_allow"),
    ("metrics", "topics_deny"),
}
TOGETHER = ("tls_certificate_file", "tls_key_file")


def test_a_certificate_without_its_key_is_refused_and_so_is_a_key_without_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A missing setting must not disable TLS silently."""
    for present, missing in (TOGETHER, TOGETHER[::-1]):
        monkeypatch.setenv(f"REBALANCE_MONITOR_METRICS__{present.upper()}", "/etc/file.pem")
        monkeypatch.delenv(f"REBALANCE_MONITOR_METRICS__{missing.upper()}", raising=False)
        assert [line for line in errors(None) if "set both, or remove both" in line]
    monkeypatch.setenv(f"REBALANCE_MONITOR_METRICS__{TOGETHER[0].upper()}", "/etc/file.pem")
    assert load_settings(None).metrics.tls_key_file == "/etc/file.pem"


def test_an_invalid_regular_expression_is_refused_with_the_reason(file: Path) -> None:
    """Otherwise the error would come at the first scrape."""
    file.write_text("[metrics]\ngroups_allow = ''\ngroups_deny = '(test'\ntopics_allow = '(?=a)'\n")
    assert errors(file) == [
        "metrics.groups_allow: String should have at least 1 character (got '')",
        "metrics.groups_deny: not a regular expression of RE2: missing ): (test (got '(test')",
        "metrics.topics_allow: not a regular expression of RE2: invalid perl operator: (?= (got '(?=a)')",
    ]


def test_no_duration_is_longer_than_a_hundred_years(file: Path) -> None:
    """With a retention of 740,000 days, every maintenance of the tables failed: "date value out of range"."""
    file.write_text(
        "[tables]\nretention_days = 36501\nversions_kept_hours = 876001\n[sampling]\ninterval_seconds = 1e300\n"
        "[[groups]]\nmatch = 'a'\nmax_lag_seconds = 3153600001\n"
    )
    assert errors(file) == [
        "tables.retention_days: Input should be less than or equal to 36500 (got 36501)",
        "tables.versions_kept_hours: Input should be less than or equal to 876000 (got 876001)",
        "sampling.interval_seconds: Input should be less than or equal to 60 (got 1e+300)",
        "[[groups]] entry 1, max_lag_seconds: Input should be less than or equal to 3153600000 (got 3153600001)",
    ]


def test_every_setting_that_is_a_duration_has_this_limit() -> None:
    """A setting whose type is not in `durations` would accept a number that fails only later.

    `sampling.interval_seconds` and `sampling.lag_table_seconds` have lower limits of their own.
    """
    schema = Settings.model_json_schema()["$defs"].values()
    settings = [setting for section in schema for setting in section.get("properties", {}).items()]
    days_in = {"seconds": 1 / 86_400, "hours": 1 / 24, "days": 1}
    durations = {name: rest for name, rest in settings if name.rpartition("_")[2] in days_in}
    assert len(durations) >= 14
    assert durations.pop("interval_seconds")["maximum"] == 60
    assert durations.pop("lag_table_seconds")["maximum"] == 1800
    for name, rest in durations.items():
        maximum = rest.get("maximum") or rest["anyOf"][0]["maximum"]
        assert maximum * days_in[name.rpartition("_")[2]] == pytest.approx(LONGEST_DAYS), name
    assert utc(0) - timedelta(days=LONGEST_DAYS), "the maintenance subtracts the retention from a date"


@pytest.mark.parametrize(("section", "key"), EVERY)
def test_every_setting_is_an_environment_variable_too(section: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = f"{ENVIRONMENT_PREFIX}{section}__{key}".upper()
    monkeypatch.setenv(variable, '{"no": ["setting", "is", "like", "this"]}')
    if (section, key) in ANY_TEXT:
        assert getattr(getattr(load_settings(None), section), key) == os.environ[variable]
    elif key in TOGETHER:
        assert any(key in line for line in errors(None))
    elif key in {"checkpoint", "basic_auth_users_file"}:
        assert os.environ[variable] in getattr(getattr(load_settings(None), section), key)
    else:
        places = (f"{section}.{key}".replace("__", "."), f"{section}: {key} ".replace("__", "."))
        assert any(line.startswith(places) for line in errors(None))


def test_lists_and_tables_are_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_MONITOR_EVALUATION__STRATEGIES", '["sticky"]')
    monkeypatch.setenv("REBALANCE_MONITOR_SPARK__CONF", '{"spark.sql.x": "1"}')
    settings = load_settings(None)
    assert settings.evaluation.strategies == ("sticky",)
    assert {name: value.get_secret_value() for name, value in settings.spark.conf.items()} == {"spark.sql.x": "1"}


def test_the_error_for_a_list_that_is_no_json_names_the_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error once named the file. Later, it named a class of pydantic instead of the variable."""
    file.write_text("")
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__CLUSTER", "[1 hunter2")
    monkeypatch.setenv("rebalance_monitor_evaluation__strategies", "[1 hunter2")
    (line,) = errors(file)
    assert line == (
        "rebalance_monitor_evaluation__strategies: not valid JSON from character 4: write lists and tables as JSON"
    )


def test_every_error_is_named_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(
        '[kafka]\nbootstrap_servers = "broker"\nclutser = "x"\n[nosuch]\na = 1\n'
        "[sampling]\ninterval_seconds = -1\n[evaluation]\nstrategies = ['range', 'lucky']\n"
    )
    monkeypatch.setenv("REBALANCE_MONITOR_METRICS__PORT", "high")
    monkeypatch.setenv("REBALANCE_MONITOR_METRICS__PROT", "1")
    monkeypatch.setenv("REBALANCE_MONITOR_KAFAK__CLUSTER", "x")
    by_setting = {line.partition(": ")[0]: line.partition(": ")[2] for line in errors(file)}
    assert by_setting.keys() == {
        "kafka.bootstrap_servers",
        "kafka.clutser",
        "nosuch",
        "sampling.interval_seconds",
        "evaluation.strategies",
        "metrics.port",
        "metrics.prot",
        "REBALANCE_MONITOR_KAFAK__CLUSTER",
    }
    assert (
        by_setting["kafka.bootstrap_servers"] == "address 1 is not host:port: write no scheme, no user and no password"
    )
    assert by_setting["kafka.clutser"] == "no such setting"
    assert "lucky" in by_setting["evaluation.strategies"]
    assert "known: cooperative-sticky, range, roundrobin" in by_setting["evaluation.strategies"]
    assert by_setting["REBALANCE_MONITOR_KAFAK__CLUSTER"].startswith(
        "no such section: the sections are kafka, clusters, source"
    )


def test_variables_that_kubernetes_sets_for_a_service_of_our_name_are_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REBALANCE_MONITOR_PORT", "tcp://10.0.0.1:9560")
    monkeypatch.setenv("REBALANCE_MONITOR_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("REBALANCE_MONITOR_PORT_9560_TCP_PROTO", "tcp")
    load_settings(None)


@pytest.mark.parametrize(
    ("content", "message", "why"),
    [
        (b"[kafka\n", "Expected ']'", "not TOML"),
        (b"a = 1\na = 2\n", "Cannot overwrite a value", "a key twice"),
        (b"\xff", "not a text in UTF-8: save the file in the encoding UTF-8", "a codec of Python was named"),
        ("[kafka]\n".encode("utf-16"), "not a text in UTF-8: save the file in the encoding UTF-8", "the same"),
        (
            "[kafka]\n".encode("utf-8-sig"),
            "the file starts with a byte order mark: save the file as UTF-8 without a byte order mark",
            "the error named a statement in line 1",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_remedy(
    file: Path, content: bytes, message: str, why: str
) -> None:
    """A Windows editor adds a byte order mark, or saves UTF-16."""
    file.write_bytes(content)
    (line,) = errors(file)
    assert line.startswith(f"{file}: {message}"), why


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kafka = 3", "kafka: write the settings in a section [kafka]"),
        ("[kafka]\nsecurity = 3", "kafka.security: write the settings in a section [kafka.security]"),
        ("clusters = 3", "clusters: write the settings in a section [clusters.NAME]"),
        ("[clusters]\neu = 3", "clusters.eu: write the settings in a section [clusters.eu]"),
        ("[spark]\nconf = 3", "spark.conf: write the settings in a section [spark.conf]"),
        (
            "[groups]\nmatch = 'x'",
            "groups: write each entry in a section [[groups]] (in an environment variable: a JSON list)",
        ),
        ("groups = [3]", "[[groups]] entry 1: write a table"),
        ("[metrics]\nexclude = 'x'", 'metrics.exclude: write a list, for example ["a", "b"] (got \'x\')'),
        ("[kafka]\ncluster = 3", "kafka.cluster: write a text in quotes (got 3)"),
        ("[metrics]\nport = 'high'", "metrics.port: write a whole number (got 'high')"),
        ("[metrics]\nport = 1.5", "metrics.port: write a whole number (got 1.5)"),
        ("[kafka]\nconnect_timeout_seconds = 'x'", "kafka.connect_timeout_seconds: write a number (got 'x')"),
        ("[spark]\nclass_archive = 3.5", "spark.class_archive: write true or false (got 3.5)"),
    ],
)
def test_an_error_about_a_type_is_the_remedy(file: Path, line: str, message: str) -> None:
    """The errors named types of Python, for example "a valid dictionary or instance of KafkaSettings"."""
    file.write_text(line)
    assert errors(file) == [message]


@pytest.mark.parametrize(
    "line",
    [
        "[metrics]\nport = true",
        "[kafka]\nconnect_timeout_seconds = false",
        "[evaluation]\nallowed_lag = true",
        "[clusters.eu]\nbootstrap_servers = 'a:1'\nconnect_timeout_seconds = true",
        "[[groups]]\nmatch = 'x'\nmax_lag_seconds = true",
    ],
)
def test_true_and_false_are_not_numbers(file: Path, line: str) -> None:
    """`max_lag_seconds = true` was a limit of one second."""
    file.write_text(line)
    (error,) = errors(file)
    assert error.endswith((": write a number (got true)", ": write a number (got false)"))


@pytest.mark.parametrize(
    "master",
    [
        "local", "local[1]", "local[*]", "local[2,3]", "local[*, 3]", "local-cluster[2,1,1024]", "yarn",
        "spark://a:7077", "spark://a:7077,b.example.com:7077", "spark://[::1]:7077", "k8s://https://api:6443",
        "k8s://http://api:80", "k8s://api",
    ],
)  # fmt: skip
def test_each_master_url_of_sparks_documentation_is_accepted(file: Path, master: str) -> None:
    file.write_text(f"[spark]\nmaster = '{master}'\n")
    assert load_settings(file).spark.master == master


@pytest.mark.parametrize(
    ("lines", "setting", "remedy"),
    [
        *(
            (f"[spark]\nmaster = '{master}'", "spark.master", "write local, local[N], local[*], spark://HOST:PORT")
            for master in ("foo", "", "local[0]", "local[]", "local[2", "localhost", "spark://a", "k8s://", "mesos://a:1")
        ),
        *(
            (f"[spark]\ndriver_memory = '{size}'", "spark.driver_memory", "write a whole number and a unit")
            for size in ("banana", "", "1024", "1.5g", "0g", "1 g", "1gb", "-1g")
        ),
        *(
            (f"[paths]\ntables = '/x/{name}'", "paths.tables", "delta-rs cannot write tables to such a path")
            for name in ("[prod]", "a|b", "a^b", "a\\b")
        ),
        ("[spark.conf]\n'spark.master' = 'foo'", "spark.conf: spark.master", "write local, local[N]"),
        ("[spark.conf]\n'spark.driver.memory' = '1024'", "spark.conf: spark.driver.memory", "a unit"),
        *(
            (f"[evaluation]\nassignors = ['{reference}']", "evaluation.assignors.0", "write module:attribute")
            for reference in ("nocolon", ":x", "x:", "", "a:b:c", "a b:c")
        ),
    ],
)  # fmt: skip
def test_a_value_with_which_run_cannot_start_is_refused(file: Path, lines: str, setting: str, remedy: str) -> None:
    """`config check` and `doctor` accepted these values. `run` ended, and systemd restarted it for ever."""
    file.write_text(lines)
    (error,) = errors(file)
    assert error.startswith(f"{setting}: ")
    assert remedy in error


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[kafka]\nbootstrap_servers = 'a:1,b'", "one of several servers without a port"),
        ("[kafka]\nbootstrap_servers = 'a:0'", "port 0"),
        ("[kafka]\nbootstrap_servers = 'a:65536'", "a port above 65535"),
        ("[kafka]\nbootstrap_servers = 'a:٣'", "a digit that is not ASCII"),
        ("[kafka]\nbootstrap_servers = ''", "no server"),
        ("[kafka]\ncluster = ''", "a cluster without a name"),
        ("[metrics]\nport = 65536", "a port above 65535"),
        ("[metrics]\nhost = 'a..b'", "`run` ended with a traceback of the codec idna"),
        (f"[metrics]\nhost = '{300 * 'x'}'", "the same"),
        ("[metrics]\nhost = ''", "no address"),
        ("[metrics]\nhost = 'http://127.0.0.1'", "a URL; the error named the port"),
        ("[metrics]\nhost = '127.0.0.1:9560'", "an address with a port"),
        ("[metrics]\nhost = '[::1]'", "the brackets belong to URLs"),
        ("[sampling]\ninterval_seconds = 0", "an interval of zero"),
        ("[sampling]\ninterval_seconds = inf", "an infinite interval"),
        ("[sampling]\nlag_table_seconds = nan", "not a number"),
        ("[spark]\nshuffle_partitions = 0", "no state partition"),
        ("[spark]\nlog_level = 'LOUD'", "an unknown level"),
        ("[spark.conf]\na = 1", "Spark's settings are text"),
        ("[paths]\ncheckpoint = '/x'\ntables = '/x'", "one folder for both"),
        ("[paths]\ncheckpoint = '/x'\ntables = '/x/tables'", "rebuild would move the tables away with the checkpoint"),
        ("[paths]\ncheckpoint = '/x/y/'\ntables = '/x'", "the checkpoint is inside the tables"),
        ("kafka = 5", "a value instead of a section"),
    ],
)
def test_an_invalid_value_is_refused(file: Path, line: str, why: str) -> None:
    file.write_text(line)
    assert len(errors(file)) == 1, why


def test_paths_may_have_a_common_prefix(file: Path) -> None:
    file.write_text("[paths]\ncheckpoint = '/x/tables-checkpoint'\ntables = '/x/tables'\n")
    assert load_settings(file).paths.tables == "/x/tables"


def test_a_value_with_too_many_nested_lists_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parsers of TOML and JSON call themselves for each level, so `config check` ended with a traceback."""
    file.write_text(f"[kafka]\ncluster = {'[' * 5_000}{']' * 5_000}\n")
    assert errors(file) == ["a setting has too many nested lists or tables"]
    monkeypatch.setenv("REBALANCE_MONITOR_GROUPS", "[" * 20_000)
    assert errors(None) == ["a setting has too many nested lists or tables"]


@pytest.mark.parametrize(
    ("path", "known_as"),
    [("relative", "{cwd}/relative"), ("~/x", "{home}/x"), ("s3a://bucket/x", "s3a://bucket/x"), ("/x/", "/x")],
)
def test_paths_are_absolute_unless_they_are_uris(
    file: Path, path: str, known_as: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    file.write_text(f"[paths]\ncheckpoint = '{path}'\n")
    expected = known_as.format(cwd=tmp_path, home=Path.home())
    assert load_settings(file).paths.checkpoint == expected


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "fe80::1%eth0", "localhost", "monitor-1.example.com."])  # noqa: S104
def test_the_port_listens_on_an_ip_address_or_a_host_name(file: Path, host: str) -> None:
    file.write_text(f"[metrics]\nhost = '{host}'\n")
    assert load_settings(file).metrics.host == host


def test_the_files_of_the_port_may_be_in_the_home_folder(file: Path) -> None:
    """`~/users` could not be read, because only paths in other sections were expanded."""
    names = ("tls_certificate_file", "tls_key_file", "basic_auth_users_file")
    file.write_text("[metrics]\n" + "".join(f"{name} = '~/{name}'\n" for name in names))
    metrics = load_settings(file).metrics
    assert [getattr(metrics, name) for name in names] == [f"{Path.home()}/{name}" for name in names]


@pytest.mark.parametrize(
    ("line", "setting"),
    [
        ("[paths]\ntables = '~nosuchuser/x'", "paths.tables"),
        ("[metrics]\nbasic_auth_users_file = '~nosuchuser/x'", "metrics.basic_auth_users_file"),
        ("[kafka.security]\nprotocol = 'SSL'\nca_file = '~nosuchuser/x'", "kafka.security.ca_file"),
    ],
)
def test_an_unknown_home_folder_is_one_line_with_the_setting(file: Path, line: str, setting: str) -> None:
    """`Path.expanduser` raises RuntimeError, which ended in a traceback."""
    file.write_text(line)
    (error,) = errors(file)
    assert error.startswith(f"{setting}: the system does not know the home folder (~): set an absolute path")


def test_without_a_home_folder_only_the_paths_must_be_set(file: Path) -> None:
    """A container can run as a user without an entry in /etc/passwd. Each command ended at the import of the module."""
    check = f"from streaming.cli import main; main(['config', 'check', '--config', {str(file)!r}])"
    command = [sys.executable, "-c", "import pwd; pwd.getpwuid = {}.__getitem__; " + check]
    environment = {name: value for name, value in os.environ.items() if name not in {"HOME", "XDG_STATE_HOME"}}
    file.write_text("")
    unset = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert unset.returncode == 1
    assert unset.stderr.splitlines() == [
        "Error: the configuration has errors:",
        "paths.checkpoint: the system does not know the home folder (~): set an absolute path",
        "paths.tables: the system does not know the home folder (~): set an absolute path",
    ]
    file.write_text("[paths]\ncheckpoint = '/c'\ntables = '/t'\n")
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def test_a_strategy_named_twice_is_one(file: Path) -> None:
    """It once caused two rows for one position and strategy, and two series with the same labels."""
    file.write_text("[evaluation]\nstrategies = ['roundrobin', 'range', 'roundrobin']\n")
    assert load_settings(file).evaluation.strategies == ("roundrobin", "range")


def checked(*arguments: str) -> tuple[int, str]:
    """Run `config check`."""
    result = CliRunner().invoke(config, ["check", *arguments])
    return result.exit_code, result.output


def test_config_check_prints_all_settings_as_valid_toml(file: Path) -> None:
    """TOML allows no raw DEL, and no pair of surrogates for a character such as a rocket."""
    file.write_text(
        "[kafka]\ncluster = 'quotes \" and \\ and é'\n[spark.conf]\n'spark.sql.x' = 'y'\n'spark.sql.🚀' = \"\\u007f\"\n"
        "[paths]\ncheckpoint = '/c'\ntables = '/t'\n"
        "[[groups]]\nmatch = '\\d+'\nteam = 'é'\n[[groups]]\nmatch = 'b'\nignore_alerts = false\n"
    )
    status, output = checked("--config", str(file))
    assert status == 0
    printed = file.with_name("printed.toml")
    printed.write_text(output)
    assert load_settings(printed).model_dump() == load_settings(file).model_dump()
    assert "(REBALANCE_MONITOR_KAFKA__CLUSTER)" in output


def test_config_check_names_every_error_and_fails(file: Path) -> None:
    file.write_text("[kafka]\nbogus = 1\n[metrics]\nport = -1\n")
    status, output = checked("--config", str(file))
    assert status != 0
    assert "kafka.bogus" in output
    assert "metrics.port" in output
    assert "Traceback" not in output


SECRET = "hunter2"  # noqa: S105 - what must not be shown
SECRETS = [
    "[spark.conf]\n'spark.hadoop.fs.s3a.secret.key' = 'hunter2'",
    "[spark.conf]\n'spark.hadoop.fs.s3a.access.key' = 'hunter2'",
    "[spark.conf]\n'kafka.sasl.jaas.config' = 'password=\"hunter2\";'",
    "[spark.conf]\n'ssl.keystore.PASSWORD' = 'hunter2'",
    "[spark.conf]\n'proxy' = 'http://me:hunter2@proxy:80/x'",
    "[spark.conf]\n'spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net' = 'hunter2'",
    "[spark.conf]\n'spark.hadoop.fs.azure.sas.container.mine' = 'hunter2'",
    "[spark.conf]\n'spark.hadoop.fs.gs.auth.service.account.private.key' = 'hunter2'",
    "[spark.conf]\n'spark.hadoop.fs.s3a.encryption.key' = 'hunter2'",
    "[spark.conf]\n'spark.sql.catalog.lake.credential' = 'hunter2'",
    "[spark.conf]\n'spark.sql.warehouse.dir' = 's3a://AKIA:hunter2/x@bucket'",
    "[spark.conf]\n'a.name.that.nobody.knows' = 'hunter2'",
    "[paths]\ntables = 'abfss://hunter2@account.net/x'",
    "[paths]\ntables = 's3a://AKIA:hunter2/cd@bucket/x'",
    "[paths]\ntables = 's3a://AKIA:c/d:e@hunter2@bucket/x'",
    "[paths]\ntables = 'abfss://a@b.net/x?sig=hunter2'",
]


@pytest.mark.parametrize("line", SECRETS)
def test_no_secret_is_printed_by_config_check(file: Path, line: str) -> None:
    file.write_text(line)
    status, output = checked("--config", str(file))
    assert status == 0
    assert SECRET not in output
    assert REDACTED in output


@pytest.mark.parametrize(
    "line",
    [
        "[spark.conf]\n'a.password' = ['hunter2']",
        "[kafka]\nbootstrap_servers = 'sasl://me:hunter2@broker'",
        "[kafka]\npassword = 'hunter2'",
        "[kafka]\nsecurity = 'hunter2'",
        "[kafka]\nbootstrap_servers = 'me:hunter2@broker'",
        "[kafka]\nbootstrap_servers = 'me:hunter2@broker:9092'",
        "[kafka.security]\noauth_token_endpoint = 'https://me:hunter2@id/token'",
        "[paths]\ncheckpoint = 's3a://k:hunter2/x@b/x'\ntables = 's3a://k:hunter2/x@b/x/tables'",
        "[clusters]\neu = 'hunter2'",
        "[clusters.eu]\nbootstrap_servers = 'me:hunter2@b:1'",
        "[spark]\nconf = 'http://me:hunter2@proxy'",
        "[links]\npage_url = 'https://me:hunter2@monitor'",
        "[links]\ngrafana_url = 'https://grafana/?auth_token=hunter2'",
        "groups = 'hunter2'",
    ],
)
def test_no_secret_is_printed_by_an_error(file: Path, line: str) -> None:
    """Error messages are copied from terminals and logs into tickets."""
    file.write_text(line)
    status, output = checked("--config", str(file))
    assert status != 0
    assert SECRET not in output


@pytest.mark.parametrize(
    ("name", "is_known", "why"),
    [
        ("spark.sql.shuffle.partitions", True, "a common setting"),
        ("spark.executor.memory", True, "a common setting"),
        ("spark.hadoop.fs.s3a.endpoint", True, "the address of an object store"),
        ("spark.executorEnv.AWS_REGION", False, "any environment variable can be a secret"),
        ("spark.driver.extraJavaOptions", False, "-Djavax.net.ssl.keyStorePassword=..."),
        ("spark.sql.catalog.lake.uri", False, "the address of a catalog can contain a password"),
        ("spark.sql.password", False, "a password"),
        ("monkey", False, "an unknown name"),
    ],
)
def test_only_values_of_names_known_to_be_harmless_are_shown(name: str, is_known: bool, why: str) -> None:
    """A list of secret names is never complete. It once missed `fs.azure.account.key.ACCOUNT` and others."""
    assert is_harmless(name) == is_known, why
    assert hide_secrets({name: SecretStr("v")}) == {name: "v" if is_known else REDACTED}


def test_settings_cannot_be_changed_after_they_were_read() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings(None).kafka.cluster = "other"  # type: ignore[misc]


def test_a_pipe_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    """With `--config <(...)`, the monitor ignored all settings without a message, and watched localhost:9092."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="pipe is not a regular file: specify the path of a TOML file"):
        load_settings(pipe)
