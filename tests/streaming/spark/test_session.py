"""What Spark is told, by the numbered rules in session.py."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from streaming.config.settings import SparkSettings
from streaming.spark.session import SUBMITTED, launch_conf, session_conf

FOLDER = Path("/temporary/of this run")
JARS = [Path("/jars/a.jar"), Path("/jars/b.jar")]


def test_started_by_itself_the_monitor_says_everything():
    """Rule 1."""
    reported = session_conf(SparkSettings(master="local[3]", driver_memory="2g"), JARS, FOLDER, submitted=False)
    assert SUBMITTED - set(reported) == {"spark.jars"}, "they are on the class path: rule 8"
    assert reported["spark.master"] == "local[3]"
    assert reported["spark.driver.memory"] == "2g"


@pytest.mark.parametrize(
    ("master", "name", "value"),
    [
        ("local", "spark.driver.extraClassPath", "/jars/a.jar:/jars/b.jar"),
        ("local[2]", "spark.driver.extraClassPath", "/jars/a.jar:/jars/b.jar"),
        ("local-cluster[2,1,1024]", "spark.jars", "/jars/a.jar,/jars/b.jar"),
        ("spark://master:7077", "spark.jars", "/jars/a.jar,/jars/b.jar"),
    ],
)
def test_jars_are_on_the_class_path_where_all_of_spark_is_one_jvm(master: str, name: str, value: str) -> None:
    """Rule 8: else Spark copies them at each start."""
    reported = session_conf(SparkSettings(master=master), JARS, FOLDER, submitted=False)
    both = {"spark.jars", "spark.driver.extraClassPath"}
    assert {each: reported[each] for each in both & set(reported)} == {name: value}


def test_jars_of_an_operator_come_behind_ours() -> None:
    """A client of an object store is one more jar, and ours are still there."""
    settings = SparkSettings(conf={"spark.driver.extraClassPath": "/opt/s3a/*"})
    reported = session_conf(settings, JARS, FOLDER, submitted=False)
    assert reported["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/opt/s3a/*"


def test_under_spark_submit_its_master_memory_and_jars_hold():
    """Rule 2: `builder.master` wins over `spark-submit --master`, and a cluster's job would run on the driver alone."""
    settings = SparkSettings(master="local[3]", conf={"spark.driver.memory": "9g", "spark.executor.cores": "2"})
    reported = session_conf(settings, JARS, FOLDER, submitted=True)
    assert not SUBMITTED & set(reported)
    assert reported["spark.executor.cores"] == "2"
    assert reported["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")


@pytest.mark.parametrize(
    ("master", "address", "why"),
    [
        ("local[2]", "127.0.0.1", "one JVM: nobody else has to reach it"),
        ("local-cluster[2,1,1024]", "127.0.0.1", "executors are processes on this machine"),
        ("spark://master:7077", None, "executors on other machines must find the driver"),
        ("k8s://https://kubernetes.default.svc", None, "executors are pods"),
    ],
)
def test_the_driver_is_bound_to_loopback_only_where_all_of_spark_is_on_one_machine(
    master: str, address: str | None, why: str
):
    """Rule 3."""
    reported = session_conf(SparkSettings(master=master), JARS, FOLDER, submitted=False)
    assert (reported.get("spark.driver.host"), reported.get("spark.driver.bindAddress")) == (address, address), why


def test_what_the_user_says_of_spark_wins_over_what_we_say():
    """A driver behind several addresses has to be told which one its executors can reach."""
    reported = session_conf(SparkSettings(conf={"spark.driver.host": "10.0.0.5"}), JARS, FOLDER, submitted=False)
    assert reported["spark.driver.host"] == "10.0.0.5"


def test_java_options_of_an_operator_come_behind_ours() -> None:
    """One more option, say for a heap dump, must not cost the log its settings."""
    theirs = "-XX:TieredStopAtLevel=1 -XX:+HeapDumpOnOutOfMemoryError"
    settings = SparkSettings(conf={"spark.driver.extraJavaOptions": theirs})
    reported = session_conf(settings, JARS, FOLDER, submitted=False)["spark.driver.extraJavaOptions"]
    ours = session_conf(SparkSettings(), JARS, FOLDER, submitted=False)["spark.driver.extraJavaOptions"]
    assert reported == f"{ours} {theirs}"


def test_spark_writes_into_the_folder_of_this_run_and_nowhere_else() -> None:
    """Rule 6: each kill left up to 40 MB in Java's own temporary folder, which knows nothing of TMPDIR."""
    reported = session_conf(SparkSettings(), JARS, FOLDER, submitted=False)
    assert f"-Djava.io.tmpdir={FOLDER}" in shlex.split(reported["spark.driver.extraJavaOptions"])
    assert reported["spark.sql.warehouse.dir"] == f"{FOLDER}/warehouse"


def test_a_value_that_may_be_a_secret_is_on_no_command_line() -> None:
    """Rule 5: `ps` showed storage keys to every user of the machine."""
    conf = {
        "spark.hadoop.fs.azure.account.key.mine": "hunter2",
        "spark.sql.warehouse.dir": "s3a://AKIA:hunter2@bucket",
        "spark.executor.cores": "2",
        "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
    }
    reported = session_conf(SparkSettings.model_validate({"conf": conf}), JARS, FOLDER, submitted=False)
    launched = launch_conf(reported, conf)
    assert "hunter2" not in str(launched)
    assert set(reported) - set(launched) == {"spark.hadoop.fs.azure.account.key.mine", "spark.sql.warehouse.dir"}


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
@pytest.mark.parametrize("theirs", [None, "of[.]theirs|secret"])
def test_sparks_own_pages_hide_what_may_be_a_secret(name: str, value: str, is_hidden: bool, theirs: str | None) -> None:
    """Spark hides names that look secret to it, and `fs.azure.account.key.mine` does not."""
    conf = {"spark.hadoop.fs.azure.account.key.mine": "x", **({"spark.redaction.regex": theirs} if theirs else {})}
    reported = session_conf(SparkSettings.model_validate({"conf": conf}), JARS, FOLDER, submitted=False)
    pattern = re.compile(reported["spark.redaction.regex"])
    expected = is_hidden and (theirs is not None or name != "spark.of.theirs")
    assert bool(pattern.search(name) or pattern.search(value)) == expected


@pytest.mark.parametrize(
    ("master", "for_three", "why"),
    [
        ("local[2]", "local[6]", "two tasks at a time for each"),
        ("local[*]", "local[*]", "all there are is all there are"),
        ("local", "local", "whoever wants a single one gets it"),
        ("local[2,3]", "local[2,3]", "retries are told to nobody else"),
        ("spark://host:7077", "spark://host:7077", "a cluster's cores are its own affair"),
    ],
)
def test_each_cluster_has_its_tasks_and_no_other_ones(master: str, for_three: str, why: str) -> None:
    """Rule 4: tasks that wait for a broker that died hold their places for two minutes."""
    settings = SparkSettings(master=master)
    assert session_conf(settings, JARS, FOLDER, submitted=False, clusters=3)["spark.master"] == for_three, why
    assert session_conf(settings, JARS, FOLDER, submitted=False)["spark.master"] == master
    assert session_conf(settings, JARS, FOLDER, submitted=False)["spark.scheduler.mode"] == "FAIR"
