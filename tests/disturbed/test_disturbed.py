"""A sample of all disturbances; `make test-errors` and `make test-writer` try every one."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compactor import log_dir_lock
from storage.files import filesystem
from tests.crash.states import LOCK_FILE
from tests.disturbed import errors, writer_ending
from tests.disturbed.campaign import (
    ERRORS,
    PARTS,
    WRITER,
    Campaign,
    disturb,
    read,
    scenes_named,
)
from tests.disturbed.copied import CopyStage
from tests.disturbed.scenes import COPIES, SCENES, Scene
from tests.disturbed.second_writer import KINDS, OF_A_DIRECTORY, OF_THE_LOCK, attacks_of
from tests.disturbed.stage import UNCHANGED, Stage
from tests.support.local_command import Ended

SAMPLE = {ERRORS: 613, WRITER: 1223}  # one of so many; primes, so that each kind is met


@pytest.mark.parametrize("who", [*SAMPLE])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_no_disturbance_loses_anything(scene: Scene, who: str, tmp_path: Path) -> None:
    outcomes = [*disturb(Stage(scene, tmp_path), who, SAMPLE[who])]
    assert outcomes
    assert not [outcome for outcome in outcomes if outcome.problems]


@pytest.mark.parametrize("scene", COPIES, ids=lambda scene: scene.name)
def test_no_error_harms_the_original_or_is_hidden_by_a_manifest(
    scene: Scene, tmp_path: Path
) -> None:
    outcomes = [*disturb(CopyStage(scene, tmp_path), ERRORS, SAMPLE[ERRORS])]
    assert outcomes
    assert not [outcome for outcome in outcomes if outcome.problems]


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
    monkeypatch.setattr(log_dir_lock, "hold_log_dir", _nothing_held)
    (scene,) = scenes_named(["rolled"])
    stage = Stage(scene, tmp_path)
    attacks = [attack for attack in attacks_of(stage) if attack.kind == kind]
    outcomes = (writer_ending.tried(stage, attack) for attack in attacks[::7])
    assert any(outcome.problems for outcome in outcomes)


def test_an_error_that_is_taken_for_a_missing_file_is_a_finding(
    rolled: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = filesystem.exists

    def forgiving(path: str) -> bool:
        try:
            return exists(path)
        except OSError:
            return False

    monkeypatch.setattr(filesystem, "exists", forgiving)
    stats = [f for f in errors.failures_of(rolled) if rolled.operations[f.at].kind == "stat"]
    outcomes = (errors.tried(rolled, failure) for failure in stats if not failure.lasts)
    assert any(outcome.problems for outcome in outcomes)


def test_a_campaign_goes_on_where_it_stopped(rolled: Stage, tmp_path: Path) -> None:
    campaign = Campaign(ERRORS, ("rolled",), 10, tmp_path / "outcomes")
    campaign.try_part("rolled", 0, tmp_path)
    first, *others = (outcome.disturbance for _, outcome in read(campaign.outcomes))
    every = [str(failure) for failure in errors.failures_of(rolled)]
    assert [first, *others] == every[:: 10 * PARTS]
    line, *_ = campaign.outcomes.read_text().splitlines(keepends=True)
    campaign.outcomes.write_text(line)
    campaign.try_part("rolled", 0, tmp_path)
    assert [outcome.disturbance for _, outcome in read(campaign.outcomes)] == [first, *others]
    assert campaign.outcomes.read_text().startswith(line)


def test_a_run_whose_lock_cannot_be_given_back_tells_what_it_changed(rolled: Stage) -> None:
    """All is done by then; it was said to have changed nothing."""
    lock = str(rolled.place.logs / LOCK_FILE)
    looked = [n for n, found in enumerate(rolled.operations) if found == ("lstat", lock, "")]
    assert max(looked) > len(rolled.operations) // 2
    outcome = errors.tried(rolled, errors.Failure(max(looked), errno.EIO, lasts=False))
    assert (outcome.ending, outcome.problems) == ("failed", [])
    assert rolled.said_falsely(Ended(1, "", f"compactor: {UNCHANGED}"))
