"""What the collector is kept from."""

import gc

from storage.collector import MUCH, collector_paused, spare_what_stays


def test_only_much_is_spared() -> None:
    before = gc.get_freeze_count()
    with collector_paused():
        few: list[object] = [[] for _ in range(MUCH // 2)]
        spare_what_stays()
        assert gc.get_freeze_count() == before
        many: list[object] = [[] for _ in range(MUCH)]
        spare_what_stays()
        assert gc.get_freeze_count() >= before + len(few) + len(many)
    gc.unfreeze()
