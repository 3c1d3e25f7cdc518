"""Test the image without a container engine: its Dockerfile, its scripts and its health check."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import bcrypt
import pytest

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import Settings
from streaming.config.settings import MetricsSettings, PathSettings
from streaming.errors import STAYS
from streaming.http.access import read_access
from streaming.http.exchange import Environ, StartResponse
from streaming.http.routes import MetricsServer
from tests.streaming.http.test_access import pem_files, users_file

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / "deploy" / "image"
DOCKERFILE = (IMAGE / "Dockerfile").read_text()
INSTRUCTIONS = [line.split(maxsplit=1) for line in re.sub(r"\\\n", " ", DOCKERFILE).splitlines() if line[:1].isupper()]


def tool(name: str) -> str:
    """Return the path of a program of the development environment."""
    path = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert path, f"{name} is missing: make setup"
    return path


def arguments_of(name: str) -> list[str]:
    """Return the arguments of every instruction with this name."""
    return [rest for instruction, rest in INSTRUCTIONS if instruction == name]


def copied_from_the_repository() -> list[str]:
    """Return the sources of all COPY instructions that do not copy from other stages."""
    return [source for rest in arguments_of("COPY") if not rest.startswith("--from") for source in rest.split()[:-1]]


def test_hadolint_accepts_the_dockerfile():
    done = subprocess.run([tool("hadolint"), IMAGE / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "script",
    [
        "deploy/setup.sh",
        "deploy/chromium.sh",
        "deploy/prometheus.sh",
        "deploy/image/build.sh",
        "deploy/image/spark.sh",
        "deploy/image/wheel.sh",
    ],
)
def test_shellcheck_accepts_the_scripts(script: str):
    done = subprocess.run(
        [tool("shellcheck"), "-ax", ROOT / script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert os.access(ROOT / script, os.X_OK)


def test_files_that_the_image_copies_exist_and_dockerignore_includes_them():
    """A source that .dockerignore excludes is otherwise an error only at the next build."""
    lines = (IMAGE / "Dockerfile.dockerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    for source in copied_from_the_repository():
        assert (ROOT / source).exists()
        assert any(source == name or source.startswith(f"{name}/") for name in kept), source
    for name in kept:
        assert (ROOT / name).exists(), f"{name} is included but does not exist"


def test_files_that_the_build_scripts_read_are_copied_before_they_run():
    """Every word of the scripts that is a file of the repository must be in a COPY instruction."""
    copied = copied_from_the_repository()
    scripts = "".join((IMAGE / name).read_text() for name in ("build.sh", "wheel.sh"))
    script = re.sub(r"(?m)^\s*#.*", "", scripts)
    words = set(re.findall(r"(?<![\w/$.-])[\w./-]+", script))
    read = {word for word in words if not word.startswith("/") and (ROOT / word).exists() and word not in (".", "..")}
    assert {
        "requirements.lock",
        "pyproject.toml",
        "streaming",
        "deploy/image/build.lock",
        "deploy/image/wheel.sh",
    } <= read
    for name in read:
        assert any(name == source or name.startswith(f"{source}/") for source in copied), name


def test_every_image_ends_as_a_user_without_permissions_and_names_the_signal_that_stops_it():
    """User 10001 has no name on the host. All three images derive from the stage that sets it."""
    assert arguments_of("USER") == ["10001:10001"]
    assert arguments_of("STOPSIGNAL") == ["SIGTERM"]
    made_from = {name: base for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)}
    assert (made_from["monitor"], made_from["demo"], made_from["spark"]) == ("runtime", "runtime", "monitor")
    assert DOCKERFILE.index("USER 10001") < DOCKERFILE.index("FROM runtime")
    assert "USER" not in DOCKERFILE[DOCKERFILE.index("FROM runtime") :]


def test_the_images_python_is_supported_and_paths_contain_its_version():
    """SPARK_HOME and the Kubernetes manifest contain a path with Python's version."""
    (minor,) = re.findall(r"^ARG PYTHON_IMAGE=python:(3\.\d+)\.\d+-slim-bookworm$", DOCKERFILE, re.MULTILINE)
    named = set(re.findall(r"venv/lib/python(3\.\d+)/", DOCKERFILE))
    manifest = (ROOT / "deploy" / "kubernetes" / "spark-operator.yaml").read_text()
    named |= set(re.findall(r"venv/lib/python(3\.\d+)/", manifest))
    assert named == {minor}
    assert 10 <= int(minor.split(".")[1]) <= 13


def test_the_image_sets_only_the_address_so_that_a_file_can_set_the_rest(monkeypatch: pytest.MonkeyPatch):
    """The environment overrides the file, so the image sets no other setting of the monitor."""
    set_here = dict(re.findall(r"(?:ENV |^ {4})([A-Z_]+)=(\S+)", DOCKERFILE, re.MULTILINE))
    ours = {name for name in set_here if name.startswith(ENVIRONMENT_PREFIX) and "__" in name}
    assert ours == {"REBALANCE_MONITOR_METRICS__HOST"}
    for name, value in set_here.items():
        if name.startswith((ENVIRONMENT_PREFIX, "XDG")):
            monkeypatch.setenv(name, value)
    settings = Settings(paths=PathSettings())
    assert settings.metrics.host == "0.0.0.0"  # noqa: S104 - the loopback address of a container is not reachable from outside
    (volume,) = arguments_of("VOLUME")
    assert settings.paths.checkpoint == f"{volume}/checkpoint"
    assert settings.paths.tables == f"{volume}/tables"
    assert arguments_of("EXPOSE") == [str(settings.metrics.port)]
    assert f'"REBALANCE_MONITOR_METRICS__PORT", "{settings.metrics.port}"' in (IMAGE / "healthy.py").read_text()


def is_healthy(port: int) -> bool:
    """Run the image's health check on a port of this machine."""
    (check,) = [json.loads(words) for words in re.findall(r"HEALTHCHECK .*?CMD (\[.*\])", DOCKERFILE)]
    script = IMAGE / Path(check[-1]).name
    environment = {**os.environ, "REBALANCE_MONITOR_METRICS__PORT": str(port)}
    done = subprocess.run([sys.executable, "-I", script], env=environment, capture_output=True, check=False)
    return done.returncode == 0


def test_the_health_check_fails_if_the_port_does_not_answer():
    assert not is_healthy(9)


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize("has_users", [False, True])
def test_the_health_check_works_with_and_without_tls_and_passwords(tmp_path: Path, has_tls: bool, has_users: bool):
    """The check uses TLS if the port does, does not verify the certificate, and sends no password."""
    certificate_file, key_file = pem_files(tmp_path, host="monitor.example") if has_tls else ("", "")
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    users = users_file(tmp_path, f"prometheus:{hashed}\n") if has_users else ""
    access = read_access(
        MetricsSettings(tls_certificate_file=certificate_file, tls_key_file=key_file, basic_auth_users_file=users)
    )
    pages = {"/-/healthy": "200 OK"}

    def answer(environ: Environ, start_response: StartResponse) -> list[bytes]:
        start_response(pages.get(environ["PATH_INFO"], "404 Not Found"), [])
        return [b""]

    server = MetricsServer("127.0.0.1", 0, lambda _: [], answer, access)
    try:
        assert is_healthy(server.port)
        pages["/-/healthy"] = "503 Service Unavailable"
        assert not is_healthy(server.port)
    finally:
        server.close()


def test_spark_on_kubernetes_starts_an_executor_with_the_variables_of_the_pod(tmp_path: Path):
    """The variables come from Spark's BasicExecutorFeatureStep. JVM options may contain spaces."""
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    pod = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SPARK_HOME": "/spark",
        "SPARK_CLASSPATH": "/opt/jars/*",
        "SPARK_JAVA_OPT_0": "-Da=1",
        "SPARK_JAVA_OPT_1": "-Db=two words",
        "SPARK_EXECUTOR_MEMORY": "1g",
        "SPARK_DRIVER_URL": "spark://driver",
        "SPARK_EXECUTOR_ID": "7",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "pod",
        "SPARK_RESOURCE_PROFILE_ID": "0",
    }
    started = subprocess.run([IMAGE / "spark.sh", "executor"], env=pod, capture_output=True, text=True, check=True)
    words = started.stdout.splitlines()
    assert words[:6] == ["-Da=1", "-Db=two words", "-Xms1g", "-Xmx1g", "-cp", "/spark/conf:/opt/jars/*:/spark/jars/*"]
    assert words[6] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert dict(zip(words[7::2], words[8::2], strict=True)) == {
        "--driver-url": "spark://driver",
        "--executor-id": "7",
        "--cores": "2",
        "--app-id": "app",
        "--hostname": "10.0.0.1",
        "--resourceProfileId": "0",
        "--podName": "pod",
    }


def test_spark_on_kubernetes_starts_the_driver_by_spark_submit(tmp_path: Path):
    """In the driver's pod the deploy mode is client, because the driver runs in this pod."""
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    submit.chmod(0o755)
    pod = {"PATH": os.environ["PATH"], "SPARK_HOME": str(tmp_path), "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.2"}
    command = [IMAGE / "spark.sh", "driver", "--properties-file", "p", "local:///a.py", "run"]
    started = subprocess.run(command, env=pod, capture_output=True, text=True, check=True)
    assert started.stdout.splitlines() == [
        *("--conf", "spark.driver.bindAddress=10.0.0.2", "--deploy-mode", "client"),
        *("--properties-file", "p", "local:///a.py", "run"),
    ]


def test_the_file_for_spark_submit_is_the_command_line_program(tmp_path: Path):
    """spark-submit needs a file that ends in .py. It must return the same exit codes as the console script."""
    file = tmp_path / "monitor.toml"
    file.write_text("[nothing]\n")
    command = [sys.executable, IMAGE / "submitted.py", "run", "--config", file]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "nothing: no such setting" in done.stderr) == (STAYS, True)
