"""What a command notes of itself."""

import os

import pytest

from compactor.command_context import open_context


@pytest.mark.parametrize("drawn", ["12345678", "1e234567", "00000000", "9e999999", "ffffffff"])
def test_no_reader_of_csv_takes_a_run_id_for_a_number(
    drawn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", lambda _: bytes.fromhex(drawn))
    with open_context() as opened:
        assert len(opened.run_id) == 8
        assert opened.run_id[0] in "abef" and opened.run_id[1:] == drawn[1:]
