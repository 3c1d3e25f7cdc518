"""Tests of the findings about this machine and its folders."""

from __future__ import annotations

import errno
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from streaming.config.load import Settings
from streaming.config.settings import KafkaSettings, MetricsSettings, PathSettings
from streaming.doctor.ask_machine import (
    checkpoint_finding,
    jars_folder_finding,
    java_finding,
    memory_of_machine_finding,
    port_finding,
    strategy_findings,
    tables_finding,
    temporary_folder_finding,
)
from streaming.doctor.finding import FAILED, NOT_CHECKED, NOTE, OK
from streaming.doctor.machine import (
    FolderState,
    RefusedFolder,
    folder_finding,
    jars_finding,
    memory_finding,
    temporary_finding,
)
from streaming.spark.checkpoint_files import IDENTITY
from tests.streaming.spark.checkpoints import as_nobody
from tests.streaming.spark.test_checkpoint import new_identity

GIB = 1 << 30
FOLDER = FolderState("/var/lib/checkpoint", exists=True, free_bytes=20 * GIB, total_bytes=100 * GIB)


@pytest.mark.parametrize(
    ("limit_and_free_gib", "heap", "clusters", "status", "why"),
    [
        ((4, 3), "1g", 1, OK, "the memory limit of the manifests"),
        ((1, 1), "1g", 1, FAILED, "the kernel would kill the JVM"),
        ((2.5, 2.5), "1g", 1, NOTE, "enough for few groups, but the peak with 10,000 groups is 3.2 GiB"),
        ((4, 3.5), "1g", 3, OK, "3.9 GiB with 10,000 groups"),
        ((4, 3.5), "1g", 4, NOTE, "each additional cluster needs 0.34 GiB"),
        ((2.5, 2.5), "1g", 3, FAILED, "2.7 GiB even with few groups"),
        ((4, 1), "1g", 1, NOTE, "the monitor itself may use the memory, so this is no failure"),
        ((4, 3), "4096m", 1, FAILED, "the heap alone is as large as the limit"),
    ],
)
def test_the_memory_must_hold_the_heap_the_python_processes_and_each_cluster(
    limit_and_free_gib: tuple[float, float], heap: str, clusters: int, status: str, why: str
) -> None:
    limit, free = (int(size * GIB) for size in limit_and_free_gib)
    assert memory_finding(limit, free, heap, clusters).status == status, why


@pytest.mark.parametrize(
    "files",
    [
        {
            "memory.max": 4 * GIB,
            "memory.current": 3 * GIB,
            "memory.stat": f"anon {2 * GIB}\ninactive_file {GIB // 2}",
        },
        {
            "memory/memory.limit_in_bytes": 4 * GIB,
            "memory/memory.usage_in_bytes": 3 * GIB,
            "memory/memory.stat": f"rss {2 * GIB}\ntotal_inactive_file {GIB // 2}",
        },
    ],
    ids=["cgroup v2", "cgroup v1"],
)
def test_the_free_memory_of_a_container_is_its_limit_without_its_used_memory(
    files: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container that was almost full, the whole limit was free. Pages of files do not count, as in Kubernetes."""
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{content}\n")
    monkeypatch.setattr("streaming.doctor.ask_machine.CGROUPS", tmp_path)
    machine = SimpleNamespace(total=64 * GIB, available=32 * GIB)
    monkeypatch.setattr("streaming.doctor.ask_machine.psutil.virtual_memory", lambda: machine)
    finding = memory_of_machine_finding(Settings())
    assert finding.text.startswith("4.0 GiB in total, 1.5 GiB free;")


@pytest.mark.parametrize("files", [{}, {"memory.max": "max"}], ids=["no container", "no limit"])
def test_without_a_limit_the_memory_of_the_machine_counts(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr("streaming.doctor.ask_machine.CGROUPS", tmp_path)
    machine = SimpleNamespace(total=64 * GIB, available=32 * GIB)
    monkeypatch.setattr("streaming.doctor.ask_machine.psutil.virtual_memory", lambda: machine)
    assert memory_of_machine_finding(Settings()).text.startswith("64.0 GiB in total, 32.0 GiB free;")


@pytest.mark.parametrize(
    ("folder", "status", "text", "why"),
    [
        (FOLDER, OK, "exists; 20.0 GiB (20 %) free", "a good folder"),
        (replace(FOLDER, exists=False), OK, "does not exist yet", "a first start"),
        (replace(FOLDER, content="belongs to the cluster 'eu'"), OK, "belongs to the cluster 'eu'", "a later start"),
        (replace(FOLDER, free_bytes=5 * GIB), NOTE, "(5 %) free", "an alert fires below 10 %"),
        (replace(FOLDER, free_bytes=GIB // 8), FAILED, "0.1 GiB", "Spark fills it with a few batches"),
        (None, NOT_CHECKED, "is not on a disk of this machine", "object storage"),
        (
            RefusedFolder("/var/lib/checkpoint", OSError(errno.EROFS, "Read-only file system", "/var/lib/checkpoint")),
            FAILED,
            "Read-only file system",
            "a volume that is mounted read-only",
        ),
    ],
)
def test_a_folder_must_be_usable_and_belong_to_the_cluster(
    folder: FolderState | RefusedFolder | None, status: str, text: str, why: str
) -> None:
    finding = folder_finding("checkpoint", "paths.checkpoint", folder)
    assert (finding.status, text in finding.text) == (status, True), why
    assert (finding.remedy is not None) == (status in {NOTE, FAILED}), "each problem has a remedy"


def test_native_libraries_need_a_folder_that_is_mounted_with_exec() -> None:
    """Docker mounts --tmpfs with noexec by default. RocksDB then fails at the first batch."""
    finding = temporary_finding(FOLDER, can_execute=False)
    assert (finding.status, "noexec" in finding.text) == (FAILED, True)


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_without_a_usable_folder_for_temporary_files_the_point_fails(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container with a read-only root file system and no mount at /tmp, this was a traceback."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / folder)])
    finding = temporary_folder_finding()
    assert (finding.status, str(tmp_path / folder) in finding.text) == (FAILED, True)
    assert finding.remedy == "make /tmp writable and make space on its disk, or set TMPDIR to a writable folder"


def test_a_user_id_without_an_account_is_a_failure_because_spark_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` reported no problem, and `run` ended with a Java stack trace."""
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    finding = java_finding()
    assert (finding.status, "Spark needs an account" in finding.text) == (FAILED, True)


def test_missing_jars_are_a_note_because_the_first_start_downloads_them() -> None:
    assert jars_finding(["delta.jar"], "/cache").status == NOTE
    assert jars_finding([], "/cache").status == OK


def test_jars_without_a_home_folder_are_a_failure_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user of a container may have no home folder. `Path.home` raises RuntimeError, which ended in a traceback."""
    for name in ("HOME", "XDG_CACHE_HOME", "REBALANCE_MONITOR_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    finding = jars_folder_finding()
    assert (finding.status, finding.remedy) == (FAILED, "set REBALANCE_MONITOR_CACHE_DIR to an absolute path")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    paths = PathSettings(checkpoint=str(tmp_path / "checkpoint"), tables=str(tmp_path / "tables"))
    return Settings(kafka=KafkaSettings(cluster="eu"), paths=paths)


def test_real_folders_are_checked_without_a_change(settings: Settings, tmp_path: Path) -> None:
    """The check must not create the checkpoint, because a folder without an identity stops the monitor."""
    assert (checkpoint_finding(settings).status, tables_finding(settings).status) == (OK, OK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", ["", "/below/it"], ids=["parent", "a folder above the parent"])
def test_a_folder_whose_parent_cannot_be_entered_fails_with_the_remedy(depth: str) -> None:
    """A different user owns the parent, with mode 0700. Each check ended in a traceback of PermissionError."""
    with tempfile.TemporaryDirectory() as folder:  # other users cannot enter pytest's folder
        private = Path(folder, "private")
        private.mkdir()
        below = f"{private}{depth}"
        paths = PathSettings(checkpoint=f"{below}/checkpoint", tables=f"{below}/tables")

        def action() -> None:
            private.chmod(0)
            for check in (checkpoint_finding, tables_finding):
                finding = check(Settings(kafka=KafkaSettings(cluster="eu"), paths=paths))
                text = f"{below}/{finding.point} cannot be used ({below}/{finding.point}: Permission denied)"
                assert (finding.status, finding.text) == (FAILED, text)
                assert (finding.remedy or "").startswith("let the user of the monitor (id ")
            private.chmod(0o700)

        assert not as_nobody(action, Path(folder))


@pytest.mark.parametrize(
    ("cluster", "status"), [("eu", OK), ("us", FAILED)], ids=["its own cluster", "a different cluster"]
)
def test_a_checkpoint_of_a_different_cluster_fails(
    settings: Settings, cluster: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody copied the settings of a different monitor, with its paths."""
    checkpoint = Path(settings.paths.checkpoint)
    checkpoint.mkdir()
    identity = new_identity(cluster, settings.spark.shuffle_partitions)
    (checkpoint / IDENTITY).write_bytes(msgspec.json.encode(identity))
    monkeypatch.setattr("streaming.doctor.ask_machine.find_damaged_file", lambda _: None)
    finding = checkpoint_finding(settings)
    assert finding.status == status
    assert f"'{cluster}'" in finding.text


def test_an_unsupported_java_fails_with_the_command_that_installs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    java = java_finding()
    assert (java.point, java.status) == ("java", FAILED)
    assert "openjdk-17" in (java.remedy or "")


@pytest.mark.parametrize(
    ("metrics", "status", "text"),
    [
        ({}, OK, "127.0.0.1:0 can be used"),
        ({"basic_auth_users_file": "/etc/no-users"}, FAILED, "/etc/no-users cannot be read"),
        ({"tls_certificate_file": "/etc/no-c", "tls_key_file": "/etc/no-k"}, FAILED, "/etc/no-k cannot be read"),
        ({"host": "192.0.2.1"}, FAILED, "cannot listen on 192.0.2.1:0"),
    ],
)
def test_the_port_and_its_files_are_checked(metrics: dict[str, str], status: str, text: str) -> None:
    """Only `run` found these mistakes."""
    finding = port_finding(MetricsSettings.model_validate({"port": 0, **metrics}))
    assert (finding.status, finding.text.startswith(text)) == (status, True)


def test_a_port_in_use_is_only_a_note_because_the_monitor_may_run() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        finding = port_finding(MetricsSettings(port=taken.getsockname()[1]))
    assert finding.status == NOTE
    assert (finding.remedy or "").startswith("if the monitor already runs on this machine, ignore this note.")


def test_each_strategy_of_the_user_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` did not load the strategies, so `run` was the first command that found the error."""
    (tmp_path / "checked_strategies.py").write_text(
        "from assignors.range.range import RangeAssignor\n"
        "class Own(RangeAssignor):\n    name = 'own'\n"
        "def broken():\n    raise ImportError('no such\\ndriver')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("Own", "RangeAssignor", "broken")
    findings = list(strategy_findings(f"checked_strategies:{name}" for name in names))
    assert [finding.status for finding in findings] == [OK, NOTE, FAILED]
    assert findings[0].text == "checked_strategies:Own can be loaded; its name is 'own'"
    assert "because its name 'range' is the name of a built-in strategy" in findings[1].text
    assert findings[2].text == "checked_strategies:broken: ImportError: no such driver"
    assert findings[2].remedy == "correct the strategy, or remove it from evaluation.assignors"
