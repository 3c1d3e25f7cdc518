"""Tests of the settings of the session, by the numbered rules in session.py."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from streaming.config.settings import SparkSettings
from streaming.spark.launch.conf import SUBMITTED, launch_conf, session_conf

FOLDER = Path("/temporary/of this run")
JARS = [Path("/jars/a.jar"), Path("/jars/b.jar")]


def test_without_spark_submit_the_monitor_sets_every_option():
    """Tests rule 1."""
    options = session_conf(SparkSettings(master="local[3]", driver_memory="2g"), JARS, FOLDER, submitted=False)
    assert SUBMITTED - set(options) == {"spark.jars"}, "rule 8: the jars are on the class path"
    assert options["spark.master"] == "local[3]"
    assert options["spark.driver.memory"] == "2g"


@pytest.mark.parametrize(
    ("master", "name", "value"),
    [
        ("local", "spark.driver.extraClassPath", "/jars/a.jar:/jars/b.jar"),
        ("local[2]", "spark.driver.extraClassPath", "/jars/a.jar:/jars/b.jar"),
        ("local-cluster[2,1,1024]", "spark.jars", "/jars/a.jar,/jars/b.jar"),
        ("spark://master:7077", "spark.jars", "/jars/a.jar,/jars/b.jar"),
    ],
)
def test_jars_are_on_the_class_path_if_spark_is_a_single_jvm(master: str, name: str, value: str) -> None:
    """Rule 8: otherwise Spark copies the jars at each start."""
    options = session_conf(SparkSettings(master=master), JARS, FOLDER, submitted=False)
    both = {"spark.jars", "spark.driver.extraClassPath"}
    assert {each: options[each] for each in both & set(options)} == {name: value}


def test_jars_of_an_operator_come_after_the_monitors_jars() -> None:
    """An additional jar, for example an object store client, does not replace the monitor's jars."""
    settings = SparkSettings(conf={"spark.driver.extraClassPath": "/opt/s3a/*"})
    options = session_conf(settings, JARS, FOLDER, submitted=False)
    assert options["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/opt/s3a/*"


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_a_collector_of_the_operator_replaces_all_options_of_the_monitors_collector(name: str) -> None:
    """Java does not start with two collectors, and the sizes of one collector slow the other."""
    settings = SparkSettings.model_validate({"conf": {name: "-XX:MaxGCPauseMillis=50 -XX:+UseG1GC"}})
    options = session_conf(settings, JARS, FOLDER, submitted=False)["spark.driver.extraJavaOptions"]
    assert not any(word in options for word in ("Serial", "NewRatio", "HeapFreeRatio"))
    assert "-XX:Tier4InvocationThreshold" in options
    other = SparkSettings.model_validate({"conf": {name: "-XX:+UseStringDeduplication"}})
    assert "-XX:+UseSerialGC" in session_conf(other, JARS, FOLDER, submitted=False)["spark.driver.extraJavaOptions"]


def test_a_larger_heap_allows_a_larger_batch() -> None:
    """Spark's limit is 1 GB for every heap. A batch above it failed at every start, and more memory did not help."""
    options = session_conf(SparkSettings(driver_memory="4g"), JARS, FOLDER, submitted=False)
    assert options["spark.driver.maxResultSize"] == "4g"


def test_the_arrow_buffers_of_two_tasks_fit_into_the_memory_beside_the_heap() -> None:
    """Spark's limit of 256 MB per Arrow batch needed more than 1 GB. 1,000 records of 1 MB failed at every start.

    Arrow doubles a full buffer and copies it, so a batch can need three times its size.
    """
    options = session_conf(SparkSettings(), JARS, FOLDER, submitted=False)
    assert 2 * 3 * int(options["spark.sql.execution.arrow.maxBytesPerBatch"]) < 1 << 28


def test_with_spark_submit_its_master_memory_and_jars_are_used():
    """Rule 2: `builder.master` overrides `spark-submit --master`. So a cluster's job would run on the driver alone."""
    settings = SparkSettings(master="local[3]", conf={"spark.driver.memory": "9g", "spark.executor.cores": "2"})
    options = session_conf(settings, JARS, FOLDER, submitted=True)
    assert not SUBMITTED & set(options)
    assert options["spark.executor.cores"] == "2"
    assert options["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")


@pytest.mark.parametrize(
    ("master", "address", "why"),
    [
        ("local[2]", "127.0.0.1", "Spark is one JVM, so no other process connects to it"),
        ("local-cluster[2,1,1024]", "127.0.0.1", "executors are processes on this machine"),
        ("spark://master:7077", None, "executors on other machines must find the driver"),
        ("k8s://https://kubernetes.default.svc", None, "executors are pods"),
    ],
)
def test_the_driver_is_bound_to_loopback_only_if_spark_runs_on_one_machine(master: str, address: str | None, why: str):
    """Tests rule 3."""
    options = session_conf(SparkSettings(master=master), JARS, FOLDER, submitted=False)
    assert (options.get("spark.driver.host"), options.get("spark.driver.bindAddress")) == (
        address,
        address,
    ), why


def test_spark_options_of_the_user_override_those_of_the_monitor():
    """A driver with several addresses needs the address that its executors can reach."""
    options = session_conf(SparkSettings(conf={"spark.driver.host": "10.0.0.5"}), JARS, FOLDER, submitted=False)
    assert options["spark.driver.host"] == "10.0.0.5"


def test_java_options_of_an_operator_come_after_the_monitors_options() -> None:
    """An additional option, for example for heap dumps, must not remove the log settings."""
    users_value = "-XX:TieredStopAtLevel=1 -XX:+HeapDumpOnOutOfMemoryError"
    settings = SparkSettings(conf={"spark.driver.extraJavaOptions": users_value})
    options = session_conf(settings, JARS, FOLDER, submitted=False)["spark.driver.extraJavaOptions"]
    ours = session_conf(SparkSettings(), JARS, FOLDER, submitted=False)["spark.driver.extraJavaOptions"]
    assert options == f"{ours} {users_value}"


def test_spark_writes_into_the_folder_of_this_run_and_nowhere_else() -> None:
    """Rule 6: each kill left up to 40 MB in Java's temporary folder. Java ignores TMPDIR."""
    options = session_conf(SparkSettings(), JARS, FOLDER, submitted=False)
    assert f"-Djava.io.tmpdir={FOLDER}" in shlex.split(options["spark.driver.extraJavaOptions"])
    assert options["spark.sql.warehouse.dir"] == f"{FOLDER}/warehouse"


def test_a_value_that_may_be_a_secret_is_on_no_command_line() -> None:
    """Rule 5: `ps` showed storage keys to all users of the machine."""
    conf = {
        "spark.hadoop.fs.azure.account.key.mine": "hunter2",
        "spark.sql.warehouse.dir": "s3a://AKIA:hunter2@bucket",
        "spark.executor.cores": "2",
        "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
    }
    options = session_conf(SparkSettings.model_validate({"conf": conf}), JARS, FOLDER, submitted=False)
    launched = launch_conf(options, conf)
    assert "hunter2" not in str(launched)
    assert set(options) - set(launched) == {"spark.hadoop.fs.azure.account.key.mine", "spark.sql.warehouse.dir"}


@pytest.mark.parametrize(
    ("name", "value", "is_hidden"),
    [
        ("fs.azure.account.key.mine", "x", True),
        ("spark.hadoop.fs.azure.account.key.mine", "x", True),
        ("spark.hadoop.fs.s3a.secret.key", "x", True),
        ("spark.of.theirs", "x", True),
        ("any", "s3a://AKIA:ab/cd@bucket", True),
        ("any", "abfss://container@account/tables", False),
        ("spark.sql.shuffle.partitions", "2", False),
    ],
)
@pytest.mark.parametrize("users_value", [None, "of[.]theirs|secret"])
def test_sparks_web_pages_hide_possible_secrets(
    name: str, value: str, is_hidden: bool, users_value: str | None
) -> None:
    """Spark hides only names that it considers secret. `fs.azure.account.key.mine` is not one of them."""
    conf = {
        "spark.hadoop.fs.azure.account.key.mine": "x",
        **({"spark.redaction.regex": users_value} if users_value else {}),
    }
    options = session_conf(SparkSettings.model_validate({"conf": conf}), JARS, FOLDER, submitted=False)
    pattern = re.compile(options["spark.redaction.regex"])
    expected = is_hidden and (users_value is not None or name != "spark.of.theirs")
    assert bool(pattern.search(name) or pattern.search(value)) == expected


@pytest.mark.parametrize(
    ("master", "for_three", "why"),
    [
        ("local[2]", "local[6]", "two parallel tasks for each cluster"),
        ("local[*]", "local[*]", "all cores cannot be multiplied"),
        ("local", "local", "a single core was requested explicitly"),
        ("local[2,3]", "local[2,3]", "a setting with retries is left unchanged"),
        ("spark://host:7077", "spark://host:7077", "the cores of a Spark cluster are not set here"),
    ],
)
def test_each_cluster_adds_its_own_parallel_tasks(master: str, for_three: str, why: str) -> None:
    """Rule 4: tasks that wait for a dead broker occupy their cores for two minutes."""
    settings = SparkSettings(master=master)
    assert session_conf(settings, JARS, FOLDER, submitted=False, clusters=3)["spark.master"] == for_three, why
    assert session_conf(settings, JARS, FOLDER, submitted=False)["spark.master"] == master
    assert session_conf(settings, JARS, FOLDER, submitted=False)["spark.scheduler.mode"] == "FAIR"
