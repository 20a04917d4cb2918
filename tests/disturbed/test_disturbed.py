"""A sample of all disturbances; `make test-errors` and `make test-writer` try every one."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from storage.files.local import LocalFiles
from tests.crash.states import LOCK_FILE
from tests.disturbed import errors, writer_ending
from tests.disturbed.campaign import ERRORS, WRITER, disturbances, scenes_named
from tests.disturbed.copied import CopyStage
from tests.disturbed.scenes import COPIES, SCENES, Scene
from tests.disturbed.second_writer import KINDS, OF_A_DIRECTORY, OF_THE_LOCK, attacks_of
from tests.disturbed.stage import UNCHANGED, Stage
from tests.support.local_command import Ended

SAMPLE = {ERRORS: 613, WRITER: 1223}  # one of so many; primes, so that each kind is met


def problems_of_a_sample(stage: Stage | CopyStage, who: str) -> list[str]:
    """Of one disturbance at least."""
    sample = islice(disturbances(stage, who), 0, None, SAMPLE[who])
    outcomes = [case.attempt() for case in sample]
    assert outcomes
    return [problem for outcome in outcomes for problem in outcome.problems]


@pytest.mark.parametrize("who", [*SAMPLE])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_no_disturbance_loses_anything(scene: Scene, who: str, tmp_path: Path) -> None:
    assert problems_of_a_sample(Stage(scene, tmp_path), who) == []


@pytest.mark.parametrize("scene", COPIES, ids=lambda scene: scene.name)
def test_no_error_harms_the_original_or_is_hidden_by_a_manifest(
    scene: Scene, tmp_path: Path
) -> None:
    assert problems_of_a_sample(CopyStage(scene, tmp_path), ERRORS) == []


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    (scene,) = scenes_named(["rolled"])
    return Stage(scene, tmp_path_factory.mktemp("rolled"))


def test_every_operation_has_every_error_and_every_attack(rolled: Stage) -> None:
    failures = list(errors.failures_of(rolled))
    assert {failure.at for failure in failures} == set(range(len(rolled.operations)))
    assert {(failure.error, failure.lasts) for failure in failures} == {
        (error, lasts) for error in (0, 5, 24, 28) for lasts in (False, True)
    }
    attacks = list(attacks_of(rolled))
    assert {attack.kind for attack in attacks} == {*KINDS}
    assert len(attacks) == len(KINDS) * len({attack.at for attack in attacks})


@contextmanager
def _nothing_held(*_: object) -> Iterator[None]:
    yield


@pytest.mark.parametrize("kind", [*OF_A_DIRECTORY, *OF_THE_LOCK])
def test_an_attack_is_a_finding_where_directories_are_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(LocalFiles, "hold_log_dir", staticmethod(_nothing_held))
    (scene,) = scenes_named(["rolled"])
    stage = Stage(scene, tmp_path)
    attacks = [attack for attack in attacks_of(stage) if attack.kind == kind]
    outcomes = (writer_ending.tried(stage, attack) for attack in attacks[::7])
    assert any(outcome.problems for outcome in outcomes)


def test_an_error_that_is_taken_for_a_missing_file_is_a_finding(
    rolled: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = LocalFiles.exists

    def forgiving(files: LocalFiles, path: str) -> bool:
        try:
            return exists(files, path)
        except OSError:
            return False

    monkeypatch.setattr(LocalFiles, "exists", forgiving)
    stats = [f for f in errors.failures_of(rolled) if rolled.operations[f.at].kind == "stat"]
    outcomes = (errors.tried(rolled, failure) for failure in stats if not failure.lasts)
    assert any(outcome.problems for outcome in outcomes)


def test_a_run_whose_lock_cannot_be_given_back_tells_what_it_changed(rolled: Stage) -> None:
    """All is done by then; it was said to have changed nothing."""
    lock = str(rolled.place.logs / LOCK_FILE)
    looked = [n for n, found in enumerate(rolled.operations) if found == ("lstat", lock, "")]
    assert max(looked) > len(rolled.operations) // 2
    outcome = errors.tried(rolled, errors.Failure(max(looked), errno.EIO, lasts=False))
    assert (outcome.ending, outcome.problems) == ("failed", [])
    assert rolled.said_falsely(Ended(1, "", f"compactor: {UNCHANGED}"))
