"""The tests of the file functions themselves wait for the disk, as others do not."""

import os
from collections.abc import Iterator

import pytest

SYNC = os.fsync  # as it is while tests are collected


@pytest.fixture(autouse=True, scope="module")
def _waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(os, "fsync", SYNC)
        yield
