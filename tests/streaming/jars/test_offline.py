"""Test the way of the jars to a machine without internet access: `jars --to FOLDER`, then `jars --from FOLDER`."""

from __future__ import annotations

import hashlib
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streaming.cli.jars import jars
from streaming.config.settings import SparkSettings
from streaming.jars import FIRST_RUN, Coordinate, JarsError, cache, copy_set, resolve
from streaming.jars.cache import LOCK_PATH
from streaming.jars.lockfile import LockedJar, format_lock, parse_lock
from streaming.java import JavaError
from streaming.spark.launch.jvm import spark_launch

CONTENTS = {"first-1.jar": b"the first jar", "second-2.jar": b"the second jar"}


@pytest.fixture(autouse=True)
def _no_download_and_a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java, Ivy cannot start. So a test fails if the monitor tries to download."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE_DIR", str(tmp_path / "cache"))
    locked = [
        LockedJar(
            Coordinate("org", *name.removesuffix(".jar").split("-")), hashlib.sha256(content).hexdigest(), len(content)
        )
        for name, content in CONTENTS.items()
    ]
    (tmp_path / "jars.lock").write_text(format_lock({"spark": locked, "broker": locked[:1]}))
    monkeypatch.setattr(cache, "LOCK_PATH", tmp_path / "jars.lock")


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """Return a folder as `jars --to` writes it."""
    folder = tmp_path / "carried"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return folder


def test_jars_from_a_folder_are_stored_and_copied_to_a_folder_again(carried: Path, tmp_path: Path):
    """A second machine gets what the first machine has, byte for byte."""
    assert [path.read_bytes() for path in resolve("spark", source=carried)] == list(CONTENTS.values())
    shutil.rmtree(carried)
    assert copy_set("spark", tmp_path / "new" / "folder") == set(CONTENTS)
    assert {path.name: path.read_bytes() for path in (tmp_path / "new" / "folder").iterdir()} == CONTENTS


def test_a_second_machine_needs_neither_the_folder_nor_java_after_the_copy(carried: Path):
    first = resolve("spark", source=carried)
    shutil.rmtree(carried)
    assert resolve("spark") == first


def test_garbage_of_the_right_size_is_replaced_with_one_warning(carried: Path, caplog: pytest.LogCaptureFixture):
    """Only the sizes were compared. With zeros in all jars, Spark had no Kafka source, and the query failed always."""
    for path in resolve("spark", source=carried):
        path.write_bytes(bytes(path.stat().st_size))
    assert [path.read_bytes() for path in resolve("spark", source=carried)] == list(CONTENTS.values())
    (line,) = caplog.messages
    assert line.startswith("2 jars in ")
    assert line.endswith("are damaged and are replaced: first-1.jar, second-2.jar")


def test_a_run_replaces_garbage_in_the_jars_or_names_the_remedy(carried: Path, caplog: pytest.LogCaptureFixture):
    """The JVM started with the garbage and ended with code 1, or ran without a class."""
    resolve("spark", source=carried)[0].write_bytes(bytes(len(CONTENTS["first-1.jar"])))
    with spark_launch(SparkSettings()) as launch, pytest.raises(JavaError, match="JAVA_HOME"):
        launch.connect()
    assert caplog.messages[0].endswith("are damaged and are replaced: first-1.jar")


def test_a_missing_jar_is_reported_before_anything_is_stored(carried: Path):
    (carried / "second-2.jar").unlink()
    with pytest.raises(
        JarsError, match=r"1 of 2 jars are not in \S+carried, for example second-2\.jar: on a machine with"
    ):
        resolve("spark", source=carried)
    assert list(cache.cache_folder().rglob("*.jar")) == []


@pytest.mark.parametrize("content", [b"the second jaR", b"the second", b""], ids=["changed", "truncated", "empty"])
def test_a_damaged_jar_is_refused_and_not_kept(carried: Path, content: bytes):
    """A copy has the same checks as a download: the hash in jars.lock decides."""
    (carried / "second-2.jar").write_bytes(content)
    with pytest.raises(JarsError, match=r"carried/second-2\.jar does not match its hash in jars\.lock: on a machine"):
        resolve("spark", source=carried)
    with pytest.raises(JarsError, match=r"second-2\.jar does not match"):  # the failed copy left no complete set
        resolve("spark", source=carried)


def test_a_jar_that_cannot_be_read_is_one_line_with_the_remedy(carried: Path):
    """The tests can run as root, whom file modes do not stop. The first page of /proc/self/mem stops root too."""
    (carried / "second-2.jar").unlink()
    (carried / "second-2.jar").symlink_to("/proc/self/mem")
    with pytest.raises(JarsError, match=r"second-2\.jar cannot be read \(Input/output error\): make it readable"):
        resolve("spark", source=carried)


def test_a_folder_that_cannot_be_written_is_one_line_with_the_remedy(carried: Path):
    resolve("spark", source=carried)
    with pytest.raises(
        JarsError, match=r"jars cannot be written to /proc/nowhere \(.+\): .+, or choose a different folder"
    ):
        copy_set("spark", Path("/proc/nowhere"))


def test_a_failed_copy_leaves_no_partial_jar(carried: Path, tmp_path: Path):
    """A folder with the name of a jar cannot be replaced by a file."""
    resolve("spark", source=carried)
    target = tmp_path / "target"
    (target / "first-1.jar").mkdir(parents=True)
    with pytest.raises(JarsError, match=r"Is a directory"):
        copy_set("spark", target)
    assert [path.name for path in target.iterdir()] == ["first-1.jar"]


def test_the_command_copies_in_both_directions(carried: Path, tmp_path: Path):
    assert _run("--from", str(carried)).exit_code == 0
    target = tmp_path / "target"
    done = _run("--to", str(target))
    assert done.exit_code == 0
    assert f"2 jars are also in {target}\n" in done.output
    assert {path.name for path in target.iterdir()} == set(CONTENTS)


def test_the_command_reports_a_folder_that_does_not_exist(tmp_path: Path):
    done = _run("--from", str(tmp_path / "nowhere"))
    assert (done.exit_code, done.output) == (
        1,
        (
            f"Error: {tmp_path}/nowhere is not a readable folder: run `jars --to FOLDER` on a machine with internet"
            " access, and copy FOLDER to this machine\n"
        ),
    )


def test_the_command_refuses_both_directions_at_once(carried: Path):
    done = _run("--from", str(carried), "--to", str(carried))
    assert done.exit_code == 2
    assert "--to and --from cannot be used together" in done.output


def test_jars_of_the_same_name_are_the_same_jar():
    """`jars --to` writes all sets into one folder, so two jars of one name would overwrite each other."""
    hashes: dict[str, set[str]] = defaultdict(set)
    for locked in parse_lock(LOCK_PATH.read_text()).values():
        for jar in locked:
            hashes[jar.coordinate.file_name].add(jar.sha256)
    assert {name for name, found in hashes.items() if len(found) > 1} == set()
    assert len(hashes) > len(FIRST_RUN)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(jars, arguments)
