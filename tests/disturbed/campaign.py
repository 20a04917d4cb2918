"""All disturbances of a scene.

Where another writer is at work the kernels stand between fences: one that goes a byte beyond what
it was given ends its process, and with it the campaign.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.bounds.guarded import Fences, all_kernels
from tests.campaign import Case, Tried
from tests.disturbed import errors, second_writer, writer_ending
from tests.disturbed.copied import CopyStage
from tests.disturbed.scenes import COPIES, SCENES, Scene
from tests.disturbed.stage import Outcome, Stage

ERRORS, WRITER = "errors", "writer"


def disturbances(stage: Stage | CopyStage, who: str) -> Iterator[Case]:
    """Yield every disturbance of a scene."""
    if who == ERRORS:
        tried = errors.tried_on_copy if isinstance(stage, CopyStage) else errors.tried
        for failure in errors.failures_of(stage):
            yield _case(stage, tried, failure)
        return
    assert isinstance(stage, Stage), "a copy is nobody else's place of work"
    with all_kernels(Fences(random.Random(0))):
        for attack in second_writer.attacks_of(stage):
            yield _case(stage, writer_ending.tried, attack)


def _case(stage: Stage | CopyStage, tried: Callable[..., Outcome], disturbance: Any) -> Case:
    attempt = partial(_tried, partial(tried, stage, disturbance))
    return Case(str(disturbance), attempt, stage.scene.name)


def _tried(attempt: Callable[[], Outcome]) -> Tried:
    outcome = attempt()
    problems = [f"{outcome.operation}, {outcome.ending}: {each}" for each in outcome.problems]
    return Tried(problems, {f"{outcome.kind}, {outcome.ending}": 1})


def stage_of(scene: Scene, root: Path) -> Stage | CopyStage:
    return CopyStage(scene, root) if scene.copies else Stage(scene, root)


def scenes_named(names: Sequence[str]) -> list[Scene]:
    return [scene for scene in (*SCENES, *COPIES) if scene.name in names]
