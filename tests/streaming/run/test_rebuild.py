"""Tests of `rebuild`: if it fails, the old checkpoint stays unchanged in its place."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError

from streaming.config.load import Settings, load_settings
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import UnusableTableError
from streaming.delta.tables import REBALANCES
from streaming.run import rebuild as rebuild_module
from streaming.run.query.last_checkpoint import LastCheckpoint, store_repair
from streaming.run.query.table_progress import RowsMissingError
from streaming.run.rebuild import RebuildError, rebuild_checkpoint
from streaming.run.writers import SecondWriterError
from streaming.spark.checkpoint import CheckpointInUseError, CheckpointLock
from streaming.spark.files import Files
from tests.streaming.spark.checkpoints import as_nobody, truncate
from tests.streaming.spark.test_checkpoint import new_identity

STAMP = "20260101T000000"


class LocalFiles(Files):
    """Files on the local disk. Hadoop's client would need a JVM."""

    def __init__(self, _: object, root: str) -> None:
        self._root = root

    def uri(self, name: str) -> str:
        """Return the full path."""
        return f"{self._root}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if the file does not exist."""
        path = Path(self.uri(name))
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        Path(self.uri(name)).parent.mkdir(exist_ok=True)
        Path(self.uri(name)).write_bytes(content)

    def exists(self) -> bool:
        """Return True if the folder exists."""
        return Path(self._root).exists()

    def move_to(self, root: str) -> None:
        """Rename the folder."""
        Path(self._root).rename(root)
        self._root = root

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._root, ignore_errors=True)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return the settings of a working checkpoint and a folder of tables, without Spark."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "monitor.json").write_text("old")
    (tmp_path / "tables").mkdir()
    file = tmp_path / "monitor.toml"
    file.write_text(f"[paths]\ncheckpoint = '{tmp_path}/checkpoint'\ntables = '{tmp_path}/tables'\n")
    monkeypatch.setattr(rebuild_module, "jvm_pid", lambda *_: 1)
    monkeypatch.setattr(rebuild_module, "Files", LocalFiles)
    monkeypatch.setattr(rebuild_module, "make_checkpoint", create_checkpoint)
    for name in ("spark_session", "WriterClaim"):
        monkeypatch.setattr(rebuild_module, name, lambda *_, **__: nullcontext())
    return load_settings(file)


def create_checkpoint(_: object, __: object, files: Files, ___: object) -> None:
    """Create the folder and file of a new checkpoint."""
    Path(files.uri("")).mkdir()
    Path(files.uri("monitor.json")).write_text("new")


def failing_with(failure: Exception) -> Callable[..., None]:
    """Return a function that creates an incomplete checkpoint and raises the failure."""

    def fail(_: object, __: object, files: Files, ___: object) -> None:
        Path(files.uri("")).mkdir()
        raise failure

    return fail


def folders(settings: Settings) -> Sequence[str]:
    parent = Path(settings.paths.checkpoint).parent
    return sorted(path.name for path in parent.iterdir() if path.is_dir())


def test_a_rebuild_puts_the_new_checkpoint_in_place_and_keeps_the_old_one(settings: Settings) -> None:
    checkpoint = Path(settings.paths.checkpoint)
    assert rebuild_checkpoint(settings, STAMP) == f"{checkpoint}.{STAMP}"
    assert (checkpoint / "monitor.json").read_text() == "new"
    assert Path(f"{checkpoint}.{STAMP}", "monitor.json").read_text() == "old"
    assert folders(settings) == ["checkpoint", f"checkpoint.{STAMP}", "tables"]


def test_a_rebuild_removes_the_new_checkpoint_of_a_killed_rebuild(settings: Settings) -> None:
    """The next `run` and the next `rebuild` neither used nor removed it."""
    parent = Path(settings.paths.checkpoint).parent
    for name in ("checkpoint.20251231T235959.new", "checkpoint.mine.new", "other.20251231T235959.new"):
        (parent / name / "origin").mkdir(parents=True)
    rebuild_checkpoint(settings, STAMP)
    kept = ["checkpoint.mine.new", "other.20251231T235959.new"]
    assert folders(settings) == sorted(["checkpoint", f"checkpoint.{STAMP}", *kept, "tables"])


def test_a_monitor_that_waits_for_a_rebuild_does_not_ask_to_stop_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a monitor of two clusters asked to stop the process that repaired the checkpoint of one of them."""
    rebuilding = f"{settings.paths.checkpoint} is being rebuilt by process {os.getpid()}: wait until the rebuild ends$"

    def try_to_watch(session: object, settings: Settings, files: Files, tables: object) -> None:
        with pytest.raises(CheckpointInUseError, match=rebuilding), CheckpointLock(settings.paths.checkpoint):
            pass
        create_checkpoint(session, settings, files, tables)

    monkeypatch.setattr(rebuild_module, "make_checkpoint", try_to_watch)
    assert rebuild_checkpoint(settings, STAMP)
    with (
        CheckpointLock(settings.paths.checkpoint),
        pytest.raises(CheckpointInUseError, match=f"is in use by process {os.getpid()}: stop that process, or "),
    ):
        rebuild_checkpoint(settings, STAMP)


def test_a_rebuild_without_an_old_checkpoint_creates_one(settings: Settings) -> None:
    shutil.rmtree(settings.paths.checkpoint)
    assert rebuild_checkpoint(settings, STAMP) is None
    assert folders(settings) == ["checkpoint", "tables"]


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device): make space on its disk"),
        (Py4JError("Parquet footer of part-0 is corrupt"), "Parquet footer of part-0 is corrupt): check the tables"),
    ],
)
def test_a_rebuild_that_fails_leaves_the_old_checkpoint_where_it_was(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, failure: Exception, message: str
) -> None:
    """The rebuild moved the good checkpoint away and then failed on a damaged table. Every later start failed too."""
    monkeypatch.setattr(rebuild_module, "make_checkpoint", failing_with(failure))
    with pytest.raises(RebuildError) as refused:
        rebuild_checkpoint(settings, STAMP)
    assert str(refused.value).startswith(f"the rebuild failed, checkpoint {settings.paths.checkpoint} is unchanged (")
    assert message in str(refused.value)
    assert refused.value.exit_code == 78
    assert folders(settings) == ["checkpoint", "tables"]
    assert Path(settings.paths.checkpoint, "monitor.json").read_text() == "old"


def test_if_the_new_checkpoint_cannot_take_its_place_the_old_one_is_put_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of the two renames may fail."""
    move_to, moves = LocalFiles.move_to, []

    def fail_at_the_second(files: LocalFiles, root: str) -> None:
        moves.append(root)
        if len(moves) == 2:
            raise OSError(errno.EIO, "Input/output error")
        move_to(files, root)

    monkeypatch.setattr(LocalFiles, "move_to", fail_at_the_second)
    with pytest.raises(RebuildError, match="is unchanged"):
        rebuild_checkpoint(settings, STAMP)
    assert folders(settings) == ["checkpoint", "tables"]
    assert Path(settings.paths.checkpoint, "monitor.json").read_text() == "old"


def test_if_the_old_checkpoint_cannot_be_put_back_the_error_names_its_new_place(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM ended between the two renames. The error said that the checkpoint was unchanged."""
    move_to, moves = LocalFiles.move_to, []

    def fail_after_the_first(files: LocalFiles, root: str) -> None:
        moves.append(root)
        if len(moves) > 1:
            raise Py4JError("Answer from Java side is empty")
        move_to(files, root)

    monkeypatch.setattr(LocalFiles, "move_to", fail_after_the_first)
    aside = f"{settings.paths.checkpoint}.{STAMP}"
    with pytest.raises(RebuildError, match=f"checkpoint {settings.paths.checkpoint} is now in {aside} "):
        rebuild_checkpoint(settings, STAMP)
    assert Path(aside, "monitor.json").read_text() == "old"


def test_damaged_tables_are_refused_before_anything_moves_and_repaired_on_request(settings: Settings) -> None:
    log = Path(settings.paths.tables, REBALANCES.name, "_delta_log")
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_bytes(b"")
    with pytest.raises(UnusableTableError, match="--repair-tables"):
        rebuild_checkpoint(settings, STAMP)
    assert folders(settings) == ["checkpoint", "tables"]
    repairs: list[str] = []
    rebuild_checkpoint(settings, STAMP, repairs.append)
    (repaired,) = repairs
    assert f"{settings.paths.tables}/{REBALANCES.name}.{STAMP}" in repaired
    assert not (log.parent).exists()


def test_a_repair_is_described_also_if_the_rebuild_fails_after_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error said that nothing had changed, and nothing said which rows the repair had removed."""
    log = Path(settings.paths.tables, REBALANCES.name, "_delta_log")
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_bytes(b"")
    monkeypatch.setattr(rebuild_module, "make_checkpoint", failing_with(Py4JError("Spark ended")))
    repairs: list[str] = []
    with pytest.raises(RebuildError):
        rebuild_checkpoint(settings, STAMP, repairs.append)
    assert len(repairs) == 1


def test_a_rebuild_leaves_only_the_old_checkpoint_beside_the_new_one(settings: Settings) -> None:
    """A repair that finds no damage leaves nothing, however often it runs."""
    tables = DeltaTables(settings.paths.tables)
    tables.open_all()
    before = sorted(path.name for path in Path(settings.paths.tables).iterdir())
    stamps = [f"{STAMP}-{number}" for number in range(3)]
    for stamp in stamps:
        rebuild_checkpoint(settings, stamp, print)
    assert folders(settings) == ["checkpoint", *(f"checkpoint.{stamp}" for stamp in stamps), "tables"]
    assert sorted(path.name for path in Path(settings.paths.tables).iterdir()) == before


def test_a_repair_names_an_unreadable_file_and_changes_nothing() -> None:
    """The repair ended in a traceback of PermissionError and exit code 1, because it ran before all checks."""
    with tempfile.TemporaryDirectory() as root:  # other users cannot enter pytest's folder
        log = Path(root, REBALANCES.name, "_delta_log")
        log.mkdir(parents=True)
        for version in range(2):
            (log / f"{version:020}.json").write_bytes(b"")

        def action() -> None:
            (log / f"{0:020}.json").chmod(0)
            rebuild_module._repair_tables(root, LocalFiles(None, root), STAMP, print)

        message = as_nobody(action, Path(root))
        assert message.startswith(
            f"UnusableTableError: the folder {root} of the tables cannot be used ({log}/{0:020}.json: Perm"
        )
        assert "let the user of the monitor" in message
        assert [path.name for path in Path(root).iterdir()] == [REBALANCES.name]


def test_a_rebuild_while_a_different_monitor_writes_changes_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new checkpoint skips rows that are in the tables when it is created.

    It would write the rows again that the other monitor adds meanwhile.
    """
    monkeypatch.setattr(rebuild_module, "WriterClaim", refuse_claim)
    with pytest.raises(SecondWriterError):
        rebuild_checkpoint(settings, STAMP)
    assert (tmp_path / "checkpoint" / "monitor.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["checkpoint", "tables"]


@contextmanager
def refuse_claim(*_: object, is_repair: bool) -> Iterator[None]:
    raise SecondWriterError(f"another monitor writes, {is_repair=}")
    yield


def damage_rows(settings: Settings) -> Path:
    """Append one row for each of two clusters to a table, and cut the file of the cluster `two`."""
    tables = DeltaTables(settings.paths.tables)
    tables.open_all()
    rows = [{"cluster": cluster, "date": date(2026, 11, 26)} for cluster in ("default", "two")]
    tables.append(REBALANCES, pa.Table.from_pylist(rows, schema=REBALANCES.schema))
    (file,) = Path(settings.paths.tables, REBALANCES.name).glob("cluster=two/*/*.parquet")
    truncate(file)
    return file


def test_a_repair_while_a_different_monitor_writes_changes_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repair moved log entries while a monitor with a different checkpoint was running, and the monitor failed."""
    file = damage_rows(settings)
    monkeypatch.setattr(rebuild_module, "WriterClaim", refuse_claim)
    with pytest.raises(SecondWriterError, match="is_repair=True"):
        rebuild_checkpoint(settings, STAMP, pytest.fail)
    assert file.exists()


def last_checkpoint(settings: Settings, cluster: str, source: str = "offsets-topic") -> LastCheckpoint:
    return LastCheckpoint(lambda: LocalFiles(None, settings.paths.tables), cluster, source)


@pytest.mark.parametrize("source", ["offsets-topic", "admin-api"])
def test_after_a_repair_each_cluster_that_lost_rows_must_be_rebuilt(settings: Settings, source: str) -> None:
    """`run` continued without the removed rows, and no message named the loss."""
    damage_rows(settings)
    two, default = (last_checkpoint(settings, cluster, source) for cluster in ("two", "default"))
    earlier, undamaged = new_identity("two", 2), new_identity("default", 2)
    two.take(earlier, "/two")
    default.take(undamaged, "/default")
    rebuild_checkpoint(settings, STAMP, print)
    default.take(undamaged, "/default")
    for _ in range(2):
        with pytest.raises(RowsMissingError) as refused:
            two.take(earlier, "/two")
    assert str(refused.value).startswith(
        f"rows of cluster 'two' may be missing in {REBALANCES.name} (tables in {settings.paths.tables}), because"
    )
    assert "run `rebalance-monitor rebuild` for this cluster" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert refused.value.exit_code == 78
    rebuilt = new_identity("two", 2, after=two.read())
    two.take(rebuilt, "/two")
    two.take(rebuilt, "/two")


def test_a_repair_after_a_rebuild_refuses_the_rebuilt_checkpoint_too(settings: Settings) -> None:
    """Each repair has a different name, so the checkpoint does not know the later repair."""
    files, two = LocalFiles(None, settings.paths.tables), last_checkpoint(settings, "two")
    store_repair(files, "two", "what_if", "20260101T000000")
    store_repair(files, "two", "rebalances", "20260101T000000")
    rebuilt = new_identity("two", 2, after=two.read())
    store_repair(files, "two", "rebalances", "20260102T000000")
    with pytest.raises(RowsMissingError, match="rows of cluster 'two' may be missing in rebalances, what_if "):
        two.take(rebuilt, "/two")


def test_the_loss_is_stored_before_a_file_is_moved(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the loss cannot be stored, or if the process is killed, no row is lost without a report."""
    file = damage_rows(settings)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", settings.paths.tables)

    monkeypatch.setattr(LocalFiles, "write", fail)
    with pytest.raises(UnusableTableError, match="make space on its disk"):
        rebuild_checkpoint(settings, STAMP, pytest.fail)
    assert file.exists()
