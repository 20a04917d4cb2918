"""The models of the logs of a directory, beside it: who holds its locks reads and writes them."""

import json
import os

from tests.engine.pairs.story import OwnLog, Written


def write_models(root: str, models: list[OwnLog]) -> None:
    found = [
        {
            "partition": own.partition,
            "written": [[w.offset, w.key.decode(), _text(w.value)] for w in own.written],
            "perhaps_gone": sorted(key.decode() for key in own.perhaps_gone),
            "is_known": own.is_known,
        }
        for own in models
    ]
    with open(os.path.join(root, "models.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)


def read_models(root: str) -> list[OwnLog]:
    with open(os.path.join(root, "models.json"), encoding="utf-8") as file:
        found = json.load(file)
    models = []
    for each in found:
        topic, number = each["partition"]
        own = OwnLog((topic, number))
        own.written = [
            Written(offset, key.encode(), None if value is None else value.encode())
            for offset, key, value in each["written"]
        ]
        own.perhaps_gone = {key.encode() for key in each["perhaps_gone"]}
        own.is_known = each["is_known"]
        models.append(own)
    return models


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
