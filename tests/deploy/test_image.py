"""The image, as far as it can be tried without a container engine: its files, its scripts, and its steps run."""

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
import trustme

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import Settings
from streaming.config.settings import PathSettings
from streaming.errors import STAYS
from streaming.http.access import Certificate, Users
from streaming.http.exchange import Environ, StartResponse
from streaming.http.port import Access, MetricsServer

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / "deploy" / "image"
DOCKERFILE = (IMAGE / "Dockerfile").read_text()
INSTRUCTIONS = [line.split(maxsplit=1) for line in re.sub(r"\\\n", " ", DOCKERFILE).splitlines() if line[:1].isupper()]


def tool(name: str) -> str:
    """A program that the development environment brings with it."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found, f"{name} is missing: make setup"
    return found


def of(name: str) -> list[str]:
    """What stands behind an instruction, wherever it stands."""
    return [rest for instruction, rest in INSTRUCTIONS if instruction == name]


def copied_from_the_repository() -> list[str]:
    """All sources of COPY but those of other stages."""
    return [source for rest in of("COPY") if not rest.startswith("--from") for source in rest.split()[:-1]]


def test_hadolint_has_nothing_to_say_of_the_dockerfile():
    done = subprocess.run([tool("hadolint"), IMAGE / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "script",
    ["deploy/setup.sh", "deploy/chromium.sh", "deploy/prometheus.sh", "deploy/image/build.sh", "deploy/image/spark.sh"],
)
def test_shellcheck_has_nothing_to_say_of_the_scripts(script: str):
    done = subprocess.run(
        [tool("shellcheck"), "-ax", ROOT / script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert os.access(ROOT / script, os.X_OK)


def test_what_the_image_copies_is_there_and_not_left_out_by_dockerignore():
    """A source that .dockerignore leaves out is an error only when somebody builds."""
    lines = (IMAGE / "Dockerfile.dockerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    for source in copied_from_the_repository():
        assert (ROOT / source).exists()
        assert any(source == name or source.startswith(f"{name}/") for name in kept), source
    for name in kept:
        assert (ROOT / name).exists(), f"{name} is let in, and is not there"


def test_what_the_build_script_reads_is_copied_before_it_runs():
    """The script's words that name files of the repository, against the COPY lines above it."""
    copied = copied_from_the_repository()
    script = re.sub(r"(?m)^\s*#.*", "", (IMAGE / "build.sh").read_text())
    words = set(re.findall(r"(?<![\w/$.-])[\w./-]+", script))
    read = {word for word in words if not word.startswith("/") and (ROOT / word).exists() and word not in (".", "..")}
    assert {
        "requirements.lock",
        "requirements-dev.lock",
        "pyproject.toml",
        "streaming",
        "deploy/image/build.lock",
    } <= read
    for name in read:
        assert any(name == source or name.startswith(f"{source}/") for source in copied), name


def test_every_image_ends_as_a_user_without_rights_and_names_the_signal_that_stops_it():
    """10001: no name of the host's has that number. All three images come from the stage that says so."""
    assert of("USER") == ["10001:10001"]
    assert of("STOPSIGNAL") == ["SIGTERM"]
    made_from = {name: base for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)}
    assert (made_from["monitor"], made_from["demo"], made_from["spark"]) == ("runtime", "runtime", "monitor")
    assert DOCKERFILE.index("USER 10001") < DOCKERFILE.index("FROM runtime")
    assert "USER" not in DOCKERFILE[DOCKERFILE.index("FROM runtime") :]


def test_the_images_python_is_one_the_project_supports_and_its_site_packages_are_where_we_say():
    """SPARK_HOME and Kubernetes' manifest name a folder with Python's version in it."""
    (minor,) = re.findall(r"^ARG PYTHON_IMAGE=python:(3\.\d+)\.\d+-slim-bookworm$", DOCKERFILE, re.MULTILINE)
    named = set(re.findall(r"venv/lib/python(3\.\d+)/", DOCKERFILE))
    manifest = (ROOT / "deploy" / "kubernetes" / "cluster" / "spark-application.yaml").read_text()
    named |= set(re.findall(r"venv/lib/python(3\.\d+)/", manifest))
    assert named == {minor}
    assert 10 <= int(minor.split(".")[1]) <= 13


def test_variables_the_image_sets_are_settings_and_leave_the_file_its_say(monkeypatch: pytest.MonkeyPatch):
    """The environment wins over the file, so the image sets nothing that a file may want to say, but the address."""
    set_here = dict(re.findall(r"(?:ENV |^ {4})([A-Z_]+)=(\S+)", DOCKERFILE, re.MULTILINE))
    ours = {name for name in set_here if name.startswith(ENVIRONMENT_PREFIX) and "__" in name}
    assert ours == {"REBALANCE_MONITOR_METRICS__HOST"}
    for name, value in set_here.items():
        if name.startswith((ENVIRONMENT_PREFIX, "XDG")):
            monkeypatch.setenv(name, value)
    settings = Settings(paths=PathSettings())
    assert settings.metrics.host == "0.0.0.0"  # noqa: S104 - a container's own loopback would be reached by nobody
    (volume,) = of("VOLUME")
    assert settings.paths.checkpoint == f"{volume}/checkpoint"
    assert settings.paths.tables == f"{volume}/tables"
    assert of("EXPOSE") == [str(settings.metrics.port)]
    assert f'"REBALANCE_MONITOR_METRICS__PORT", "{settings.metrics.port}"' in (IMAGE / "healthy.py").read_text()


def is_healthy(port: int) -> bool:
    """What the image's check says of a port of this machine."""
    (check,) = [json.loads(words) for words in re.findall(r"HEALTHCHECK .*?CMD (\[.*\])", DOCKERFILE)]
    script = IMAGE / Path(check[-1]).name
    environment = {**os.environ, "REBALANCE_MONITOR_METRICS__PORT": str(port)}
    done = subprocess.run([sys.executable, "-I", script], env=environment, capture_output=True, check=False)
    return done.returncode == 0


def test_the_health_check_fails_where_nobody_answers():
    assert not is_healthy(9)


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize("has_users", [False, True])
def test_the_health_check_asks_the_port_as_it_is_guarded(tmp_path: Path, has_tls: bool, has_users: bool):
    """Over TLS where the port speaks it, whoever signed the certificate; and without a password, for it has none."""
    users = Users({"prometheus": bcrypt.hashpw(b"secret", bcrypt.gensalt(4))}) if has_users else None
    access = Access(certificate(tmp_path) if has_tls else None, users)
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


def certificate(folder: Path) -> Certificate:
    """A certificate for another name than loopback's."""
    issued = trustme.CA().issue_cert("monitor.example")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "key.pem").chmod(0o600)
    issued.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    return Certificate(str(folder / "certificate.pem"), str(folder / "key.pem"))


def test_the_build_script_refuses_what_it_does_not_know(tmp_path: Path):
    """A misspelled second word must not build an image without what it asked for."""
    done = subprocess.run([IMAGE / "build.sh", tmp_path / "x", "dmeo"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "build.sh: unknown argument dmeo: use demo or nothing\n")


def test_spark_on_kubernetes_starts_an_executor_with_what_the_pod_is_told(tmp_path: Path):
    """The variables of Spark's BasicExecutorFeatureStep, and its JVM options one by one, spaces and all."""
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
    """In the driver's pod the deploy mode is client: the pod is already where the driver shall run."""
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


def test_what_spark_submit_is_given_is_the_command_line(tmp_path: Path):
    """It takes a file that ends in .py; ours must end with the codes that the console script ends with."""
    file = tmp_path / "monitor.toml"
    file.write_text("[nothing]\n")
    command = [sys.executable, IMAGE / "submitted.py", "run", "--config", file]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "nothing: no such setting" in done.stderr) == (STAYS, True)
