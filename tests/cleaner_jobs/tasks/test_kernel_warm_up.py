"""Warming up covers every kernel with the types of a task: a round compiles nothing more."""

import subprocess
import sys
import textwrap
from pathlib import Path

from storage.codecs.compression import Codec
from tests.support.made_log import keyed, make_partition, packed
from tests.support.reference_batch import ReferenceBatch


def test_a_round_needs_no_kernel_that_warming_up_did_not_load(tmp_path: Path) -> None:
    """In a process of its own: what was compiled for other types by other tests does not count."""
    make_partition(
        tmp_path / "logs",
        {
            0: [keyed(0, "abA."), packed(keyed(4, "aBc"), Codec.LZ4)],
            7: [packed(keyed(7, "aaa"), Codec.SNAPPY), ReferenceBatch(10, 11, 0, 0, -1, -1)],
            12: [],
        },
    )
    code = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        import pytest
        from numba.core.dispatcher import Dispatcher
        from cleaner_jobs.tasks import kernel_warm_up
        from tests.bounds.guarded import is_inlined
        from tests.support.local_round import open_local_round
        from tests.support.made_log import plan_of, round_of

        kernel_warm_up.warm()
        kernels = {
            f"{module}.{name}": value
            for module in sorted(sys.modules)
            if module.partition(".")[0] in ("storage", "cleaner_jobs")
            for name, value in vars(sys.modules[module]).items()
            if isinstance(value, Dispatcher) and not is_inlined(value)
        }
        before = {name: list(kernel.signatures) for name, kernel in kernels.items()}
        with pytest.MonkeyPatch.context() as patches:
            local = open_local_round(Path(sys.argv[1]), patches)
            partition = Path(sys.argv[2])
            plan = round_of(plan_of(partition, [[0], [7]], 12))
            for dry_run in (True, False):
                print(local.run(plan, dry_run).logs[0].status)
        for name, kernel in kernels.items():
            if list(kernel.signatures) != before[name]:
                print("more", name)
        print("kernels", len(kernels))
        """
    )
    paths = [str(tmp_path / "work"), str(tmp_path / "logs" / "orders-0")]
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["would-clean", "cleaned"], done.stdout
    assert "more" not in done.stdout
    assert int(done.stdout.split()[-1]) >= 50
