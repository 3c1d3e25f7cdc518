"""Tests of the start of Spark's JVM, by the numbered rules in jvm.py."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from pathlib import Path

import pytest

from streaming.config.settings import SparkSettings
from streaming.errors import MAY_PASS
from streaming.java import JavaError, find_java
from streaming.spark.launch.conf import launch_conf, session_conf
from streaming.spark.launch.jvm import SparkStartError, spark_class_path, spark_command, spark_home, spark_launch


def test_the_command_line_is_that_of_sparks_own_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rule 2: a new version of Spark may need other options. Only `--add-modules` and the order of jars differ."""
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    settings = SparkSettings.model_validate(
        {"driver_memory": "777m", "conf": {"spark.driver.extraClassPath": "/s3a/*"}}
    )
    conf = session_conf(settings, [Path("/jars/a.jar")], tmp_path / "with space", submitted=False)
    home, java, on_command_line = spark_home(), find_java(), launch_conf(conf, settings.conf)
    ours = spark_command(java, [], spark_class_path(conf, home), conf, on_command_line)
    arguments = [word for name, value in on_command_line.items() for word in ("--conf", f"{name}={value}")]
    launcher = [java, "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    done = subprocess.run([*launcher, *arguments, "pyspark-shell"], env=environment, capture_output=True, check=True)
    theirs = done.stdout.decode().lstrip("\n\0").rstrip("\0").split("\0")
    theirs.remove("--add-modules=jdk.incubator.vector")
    folders = [
        [entry.rstrip("/") for entry in words[2].split(":") if not entry.startswith(f"{home}/jars/")]
        for words in (ours, theirs)
    ]
    folders[1].remove("hive-jackson/*")  # PySpark does not have this folder
    assert folders[0] == folders[1] == ["/jars/a.jar", "/s3a/*", f"{home}/conf", "/etc/hadoop"]
    assert set(ours[:2] + ours[3:]) == {str(java), *theirs[1:2], *theirs[3:]}


def test_jars_of_spark_are_in_the_order_of_their_names(tmp_path: Path):
    """Rule 2: a folder lists its files in a different order on each machine, and an archive needs the same order."""
    (tmp_path / "jars").mkdir()
    for name in ("c.jar", "a.jar", "b.jar", "readme.txt"):
        (tmp_path / "jars" / name).touch()
    assert [Path(entry).name for entry in spark_class_path({}, tmp_path)][1:] == ["a.jar", "b.jar", "c.jar"]


def use_java_that_runs(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set JAVA_HOME to a Java 17 that runs the shell script instead of Spark."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"""#!/bin/sh\n[ "$1" = -version ] && echo 'version "17"' >&2 && exit\n{script}\n""")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


def test_an_error_of_the_start_is_raised_by_connect_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rule 1: if the address of the broker is wrong and Java is missing, the address is reported first.

    A lack of memory has the same exit code as a wrong option, so a restart of the monitor may help.
    """
    use_java_that_runs("exit 3", tmp_path, monkeypatch)
    with spark_launch(SparkSettings()) as launch:
        launch.begin()
        with pytest.raises(SparkStartError, match=r"ended with code 3 while it started") as error:
            launch.connect()
    assert str(error.value).endswith("check spark.master, spark.driver_memory and spark.conf")
    assert error.value.exit_code == MAY_PASS


def test_no_jvm_starts_for_a_user_id_without_an_account(monkeypatch: pytest.MonkeyPatch):
    """With `docker run --user 12345`, `run` showed a Java stack trace."""
    monkeypatch.setattr("pwd.getpwuid", dict[int, str]().__getitem__)
    with spark_launch(SparkSettings()) as launch:
        launch.begin()
        with pytest.raises(JavaError, match="Spark needs an account"):
            launch.connect()


def test_a_jvm_that_hangs_is_killed_after_the_stop_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 7: after a SIGSTOP of the JVM, SIGTERM did not end the monitor, and a kill of the monitor left the JVM."""
    use_java_that_runs("exec sleep 600", tmp_path, monkeypatch)
    monkeypatch.setattr("streaming.spark.launch.jvm.STOP_SECONDS", 0.1)
    stop = threading.Event()
    with spark_launch(SparkSettings()) as launch:
        launch.limit_stop(stop)
        launch.begin()
        while launch._process is None:
            time.sleep(0.02)
        stop.set()
        with pytest.raises(SparkStartError, match="ended with code -9"):
            launch.connect()
    assert "did not stop within 0.1 s after the stop signal, so it is killed" in caplog.text


def test_a_launch_that_nobody_needs_starts_no_jvm_and_ends_at_once(monkeypatch: pytest.MonkeyPatch):
    """The monitor possibly ends before it needs Spark, for example because no broker answers."""
    monkeypatch.setenv("JAVA_HOME", "/absent")
    with spark_launch(SparkSettings()):
        pass


def test_the_options_of_an_archive_come_before_those_of_the_user(tmp_path: Path):
    """Java uses the last value, so a user can switch archives off with `-Xshare:off`."""
    settings = SparkSettings.model_validate({"conf": {"spark.driver.extraJavaOptions": "-Xshare:off"}})
    conf = session_conf(settings, [], tmp_path, submitted=False)
    words = spark_command(Path("java"), ["-Xshare:auto"], [], conf, {})
    assert words.index("-Xshare:auto") < words.index("-Xshare:off")
    assert shlex.join(words).endswith("pyspark-shell")
