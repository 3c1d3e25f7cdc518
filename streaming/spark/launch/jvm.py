"""Start Spark's JVM in the background, and stop it.

1. The start of the JVM takes seconds, and Python's imports also take seconds. Both run at the same time. So this module
   does not import PySpark, and `begin` does not wait for the JVM. If the start fails, `connect` raises the error.
   Before `connect`, the monitor can report a different error, for example an unreachable broker.
2. This module composes the same command line as `spark-submit`, but `spark-submit` starts a second JVM to compose it
   (0.5 CPU seconds). The jars of Spark are sorted by name. So the class path is the same on every machine. This is
   necessary, because the class archive in a container image is valid only for the class path that was used to create
   the archive.
3. Spark's file `spark-env.sh` is not read. If your Spark installation needs `spark-env.sh`, use `spark-submit`.
4. If Spark runs in local mode, `SPARK_HOME` is not in the environment of the JVM. With `SPARK_HOME`, each Python worker
   would import PySpark from an archive and would have to compile its modules.
5. The JVM ends when its standard input is closed. So the JVM also ends if this process is killed.
6. If `spark-submit` started the monitor, the JVM is already running.
7. A JVM that hangs answers no call, so a stop would wait forever. If the monitor has not closed Spark `STOP_SECONDS`
   after the stop signal, the JVM is killed. Then every open call to the JVM fails, and the monitor ends.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streaming.class_archive import ClassArchive, writes_archive
from streaming.config.environment import without_settings
from streaming.config.settings import SparkSettings
from streaming.errors import STAYS, RemedyError
from streaming.jars import resolve
from streaming.java import check_account, find_java
from streaming.private_folder import PrivateFolder, private_folder, remove_leftovers
from streaming.spark.launch.conf import CLASS_PATH, JAVA_OPTIONS, is_one_jvm, launch_conf, session_conf

EXIT_SECONDS = 5.0
"""Time in seconds after which a JVM that does not end is killed."""

STOP_SECONDS = 40.0
"""Maximum time from the stop signal to the end of Spark. A stop takes at most 20 s if the JVM answers.

Our files for systemd, Compose and Kubernetes allow 60 s.
"""

MALLOC_ARENAS = 2
"""Maximum number of glibc's heaps. The default is eight per core, and each heap keeps its own freed memory."""

_FOLDER_PREFIX = "kafka-rebalance-monitor-spark-"
_POLL_SECONDS = 0.02
_MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
_OPENED_PACKAGES = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_JAVA_OPTIONS_OF_SPARK = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dderby.connection.requireAuthentication=false",
)
"""The options that Spark's launcher adds (`JavaModuleOptions`), without `--add-modules=jdk.incubator.vector`.

Only Spark's machine learning uses this module. The module prints a warning, and prevents the use of the JDK's class
archive.
"""


class SparkStartError(RemedyError):
    """Error: Spark did not start. A restart may help."""


class SparkSettingError(SparkStartError):
    """Error: Spark did not start because of its settings."""

    exit_code = STAYS


SETTINGS_REMEDY: Final = "check spark.master, spark.driver_memory and spark.conf"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Jvm:
    """A JVM that is ready for PySpark.

    `conf` has all settings of the session. `process`, `port` and `secret` are None if `spark-submit` started the JVM.
    """

    conf: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    port: str | None = None
    secret: str | None = None


class SparkLaunch:
    """One start of Spark's JVM. `clusters` is the number of watched clusters."""

    def __init__(self, settings: SparkSettings, clusters: int, folder: PrivateFolder, exit_seconds: float) -> None:
        self._settings = settings
        self._clusters = clusters
        self._folder = folder
        self._exit_seconds = exit_seconds
        self._is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        self._connection_file = folder.path / "gateway"
        self._conf: Mapping[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_over = False
        self._is_closed = threading.Event()

    def begin(self) -> None:
        """Start the JVM in the background (rule 1)."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="start of Spark", daemon=True)
            self._thread.start()

    def connect(self) -> Jvm:
        """Wait until the JVM is ready. Raises SparkStartError, JavaError, JarsError or OSError."""
        self.begin()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        if self._process is None:
            return Jvm(self._conf)
        while not self._connection_file.exists():
            if (code := self._process.poll()) is not None:
                # Java has the same exit code for a wrong option and for a lack of memory. So a restart may help.
                raise SparkStartError(
                    f"Spark's Java process ended with code {code} while it started: read its output above, and"
                    f" {SETTINGS_REMEDY}"
                )
            time.sleep(_POLL_SECONDS)
        if (code := self._process.poll()) is not None:  # it ended while the monitor waited for the topic
            raise SparkStartError(
                f"Spark's Java process ended with code {code} before its first query: start the monitor again"
            )
        # After a monitor is killed, its JVM runs a little longer. So its folder is possibly not removed yet.
        remove_leftovers(_FOLDER_PREFIX)
        content = self._connection_file.read_bytes()  # the port, the length of the secret, the secret
        return Jvm(self._conf, self._process, str(int.from_bytes(content[:4], "big")), content[8:].decode())

    def limit_stop(self, stop: threading.Event) -> None:
        """Kill the JVM if `end` is not called within `STOP_SECONDS` after `stop` is set (rule 7)."""

        def kill_after_stop() -> None:
            stop.wait()
            if not self._is_closed.wait(STOP_SECONDS) and self._process is not None:
                _log.warning(
                    "Spark's Java process %d did not stop within %g s after the stop signal, so it is killed",
                    self._process.pid,
                    STOP_SECONDS,
                )
                self._process.kill()

        threading.Thread(target=kill_after_stop, name="limit of the stop", daemon=True).start()

    def end(self) -> None:
        """End the JVM and wait until it has ended (rule 5). The function does not wait for a download of jars."""
        self._is_closed.set()
        with self._lock:
            self._is_over = True
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not self._connection_file.exists():
            self._process.kill()  # the JVM does not read its standard input yet
        try:
            self._process.wait(self._exit_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _run(self) -> None:
        try:
            settings, jars = self._settings, [] if self._is_submitted else resolve("spark")
            self._conf = session_conf(
                settings, jars, self._folder.path, submitted=self._is_submitted, clusters=self._clusters
            )
            if self._is_submitted:
                return
            check_account()
            java, on_command_line = find_java(), launch_conf(self._conf, settings.conf)
            with self._lock:
                if not self._is_over:
                    self._process = self._start(java, on_command_line)
        except Exception as error:  # noqa: BLE001 - `connect` raises it
            self._error = error

    def _start(self, java: Path, on_command_line: Mapping[str, str]) -> subprocess.Popen[bytes]:
        home = spark_home()
        class_path = spark_class_path(self._conf, home)
        has_archive = self._settings.class_archive and not writes_archive(shlex.split(self._conf[JAVA_OPTIONS]))
        options = ClassArchive("spark", java, class_path).options if has_archive else []
        is_alone = is_one_jvm(self._conf["spark.master"])
        environment = {
            **without_settings(os.environ),
            "JAVA_HOME": str(java.parent.parent),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONHASHSEED": "0",  # as in spark-submit
            "SPARK_CONF_DIR": os.environ.get("SPARK_CONF_DIR") or str(home / "conf"),  # has spark-defaults.conf
            "SPARK_SCALA_VERSION": "2.13",  # without it, a master `local-cluster` looks for a build folder of Spark
            "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", str(MALLOC_ARENAS)),  # also for the Python workers
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection_file),
            **({} if is_alone else {"SPARK_HOME": str(home)}),
        }
        if is_alone:
            environment.pop("SPARK_HOME", None)  # rule 4
        return subprocess.Popen(
            spark_command(java, options, class_path, self._conf, on_command_line),
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=[self._folder.lock],
            start_new_session=True,  # Ctrl-C must not end the JVM before the query
        )


@contextmanager
def spark_launch(
    settings: SparkSettings, clusters: int = 1, exit_seconds: float = EXIT_SECONDS
) -> Iterator[SparkLaunch]:
    """Yield a launch with a separate folder for temporary files. At the end of the `with` block, the JVM ends."""
    with private_folder(_FOLDER_PREFIX) as folder:
        launch = SparkLaunch(settings, clusters, folder, exit_seconds)
        try:
            yield launch
        finally:
            launch.end()


def spark_home() -> Path:
    """Return the folder of Spark: SPARK_HOME if it is set, otherwise PySpark's folder."""
    if configured := os.environ.get("SPARK_HOME"):
        return Path(configured)
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SparkStartError("PySpark is not installed: run `make setup`, or install kafka-rebalance-monitor again")
    return Path(found.origin).parent


def spark_class_path(conf: Mapping[str, str], home: Path) -> list[str]:
    """Return the class path, in the order of `spark-submit`: the extra class path, the configuration and the jars."""
    extra = [entry for entry in conf.get(CLASS_PATH, "").split(os.pathsep) if entry]
    configuration = os.environ.get("SPARK_CONF_DIR") or str(home / "conf")
    hadoop = [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
    return [*extra, configuration, *map(str, sorted((home / "jars").glob("*.jar"))), *hadoop]


def spark_command(
    java: Path,
    archive_options: Sequence[str],
    class_path: Sequence[str],
    conf: Mapping[str, str],
    on_command_line: Mapping[str, str],
) -> list[str]:
    """Return the command line of the JVM (rule 2)."""
    java_options = shlex.split(f"{conf.get('spark.driver.defaultJavaOptions', '')} {conf[JAVA_OPTIONS]}")
    options = [*archive_options, f"-Xmx{conf['spark.driver.memory']}", *java_options]
    properties = [word for name, value in on_command_line.items() for word in ("--conf", f"{name}={value}")]
    jvm = [str(java), "-cp", os.pathsep.join(class_path), *options, *_JAVA_OPTIONS_OF_SPARK]
    return [*jvm, _MAIN_CLASS, *properties, "pyspark-shell"]
