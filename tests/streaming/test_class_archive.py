"""Tests of the class archives, by the numbered rules in class_archive.py. The JVMs are real."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from streaming.class_archive import ClassArchive, archives_folder, recording_options
from streaming.embedded import EmbeddedBroker
from streaming.java import find_java


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE_DIR", str(tmp_path / "cache"))
    archives_folder().mkdir(parents=True)


def published(archive: ClassArchive, content: bytes = b"classes") -> Path:
    """Publish an archive and return its path."""
    partial = archives_folder() / "partial"
    partial.write_bytes(content)
    archive.publish(partial)
    path = archive.find()
    assert path is not None
    return path


def java_output(*options: str) -> str:
    """Return everything that Java prints for `-version`. Fails if Java fails."""
    done = subprocess.run(
        [str(find_java()), *options, "-version"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout


def test_a_jvm_loads_its_classes_from_the_archive_that_an_earlier_jvm_wrote(tmp_path: Path):
    """Rule 1: a class of the archive has the source "shared objects file (top)"."""
    java, class_path = find_java(), [str(tmp_path / "absent.jar")]
    archive, partial = ClassArchive("spark", java, class_path), archives_folder() / "partial"
    assert archive.options == [], "rule 2: without a file there is no option"
    java_output("-cp", *class_path, *recording_options(partial), "-XX:+UseParallelGC")
    archive.publish(partial)
    loaded = java_output("-cp", *class_path, *archive.options, "-XX:+UseParallelGC", "-Xlog:class+load")
    assert "shared objects file (top)" in loaded


def test_a_change_of_the_class_path_or_of_java_needs_a_new_archive(tmp_path: Path):
    """Rule 2: after an upgrade of a jar or of Java, JVMs start without an archive."""
    jar, java = tmp_path / "a.jar", tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    for file in (jar, java, tmp_path / "jdk" / "release"):
        file.write_text("1")
    published(ClassArchive("spark", java, [str(jar)]))
    assert ClassArchive("spark", java, [str(jar), str(jar)]).find() is None
    assert ClassArchive("broker", java, [str(jar)]).find() is None
    jar.write_text("22")
    assert ClassArchive("spark", java, [str(jar)]).find() is None
    jar.write_text("1")
    (tmp_path / "jdk" / "release").write_text("17.0.16")
    assert ClassArchive("spark", java, [str(jar)]).find() is None


def test_an_incomplete_archive_is_not_used():
    """Rule 3: with an archive of which a copy had only the first part, Java ended with SIGBUS."""
    archive = ClassArchive("spark", find_java(), [])
    published(archive).write_bytes(b"class")
    assert archive.options == []


def test_java_ignores_an_archive_that_it_cannot_use():
    """Rule 4: the monitor starts, and its log has no line about the archive."""
    archive = ClassArchive("spark", find_java(), [])
    published(archive, content=b"no archive" * 10_000)
    assert java_output(*archive.options).replace(", sharing", "") == java_output().replace(", sharing", "")


def test_java_starts_without_an_archive_whose_middle_is_garbage(tmp_path: Path):
    """Rule 4: after a disk error or a bad copy, the file has the right size. Java ended with SIGSEGV."""
    archive, partial = ClassArchive("spark", find_java(), []), archives_folder() / "partial"
    options = ["-cp", str(tmp_path / "absent.jar"), "-XX:+UseParallelGC", "-Xlog:class+load"]
    java_output(*options[:3], *recording_options(partial))
    archive.publish(partial)
    path = archive.find()
    assert path is not None
    path.chmod(0o644)
    third = path.stat().st_size // 3
    with path.open("r+b") as file:
        file.seek(third)
        file.write(bytes((7 * at + 13) % 256 for at in range(third)))
    loaded = java_output(*options, *archive.options)
    assert f"-XX:SharedArchiveFile={path}" in archive.options
    assert "shared objects file (top)" not in loaded


def test_a_new_archive_replaces_the_older_one_of_its_kind_only():
    """Rule 5: otherwise, each upgrade would leave 180 MB in the cache."""
    java = find_java()
    older, broker = (
        published(ClassArchive("spark", java, ["a.jar"])),
        published(ClassArchive("broker", java, ["a.jar"])),
    )
    newer = published(ClassArchive("spark", java, ["b.jar"]))
    assert sorted(archives_folder().iterdir()) == sorted([newer, broker])
    assert older != newer


def test_a_broker_that_writes_an_archive_uses_none(tmp_path: Path):
    """Java does not start with both options. So the archives could not be created again after an update of PySpark."""
    java = find_java()
    archive = published(ClassArchive("broker", java, ["broker.jar"]))
    recording = recording_options(tmp_path / "new.jsa")
    commands = {
        is_recording: EmbeddedBroker(tmp_path, java_options=recording if is_recording else [])._command(
            java, "broker.jar"
        )
        for is_recording in (False, True)
    }
    uses_archive = {which: f"-XX:SharedArchiveFile={archive}" in command for which, command in commands.items()}
    assert uses_archive == {False: True, True: False}
