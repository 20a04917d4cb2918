"""What the collector is kept from."""

import gc

from storage.gc_pause import MUCH, collector_paused, freeze_heap


def test_only_much_is_spared() -> None:
    before = gc.get_freeze_count()
    with collector_paused():
        few: list[object] = [[] for _ in range(MUCH // 2)]
        freeze_heap()
        assert gc.get_freeze_count() == before
        many: list[object] = [[] for _ in range(MUCH)]
        freeze_heap()
        assert gc.get_freeze_count() >= before + len(few) + len(many)
    gc.unfreeze()
