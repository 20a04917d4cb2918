"""Random scripts of the engine: the same for the same seed, and without what is switched off."""

import json

from tests.engine.random_engine_script import script
from tests.engine.script_values import Options

SEEDS = range(1, 40)


def operations(options: Options) -> set[str]:
    lines = [line for seed in SEEDS for line in script(seed, options).splitlines()]
    return {json.loads(line)["op"] for line in lines}


def test_a_seed_gives_one_script() -> None:
    assert script(7) == script(7) != script(8)


def test_together_they_have_every_operation() -> None:
    assert len(operations(Options())) == 35


def test_what_is_switched_off_does_not_come() -> None:
    found = operations(Options(txn=False, damage=False, cleans=False, hide=False))
    assert found.isdisjoint({"end_txn", "verify_txn", "damage", "clean", "hide"})
    assert {"append", "read", "open", "crash"} <= found
