"""An example for Airflow 3: each night plan, dry run with a threshold, run, and a word about it.

Put it into the DAGs folder and set what stands in capitals, and the defaults of the parameters. The
worker has to see the log directories, and no broker may run on them.
"""

from datetime import datetime, timedelta

from airflow.sdk import DAG, task
from airflow.sdk.definitions.param import Param

from compactor.airflow import CompactorOperator

COMPACTOR = "/opt/log-compactor/.venv/bin/compactor"
TOO_MUCH = "freed_ratio > 0.95 and bytes_before > 1e9"  # of a log: somebody should look first

with DAG(
    dag_id="compact_kafka_logs",
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={
        "log_dirs": Param(["/backup/kafka"], type="array"),
        "options": Param([], type="array", description="words for every command"),
    },
    render_template_as_native_obj=True,  # so that a list stays one
    default_args={
        "compactor": COMPACTOR,
        "log_dirs": "{{ params.log_dirs }}",
        "options": "{{ params.options }}",
        "retries": 2,
        "retry_delay": timedelta(minutes=10),
    },
) as dag:
    plan = CompactorOperator(task_id="plan", command="plan", skip_if_nothing_to_do=False)
    dry_run = CompactorOperator(
        task_id="dry_run",
        options="{{ params.options + ['--dry-run', '--fail-if', '" + TOO_MUCH + "'] }}",
    )
    run = CompactorOperator(task_id="run")

    @task(trigger_rule="none_failed_min_one_success")
    def report(summary: dict | None = None) -> str:  # type: ignore[type-arg]
        """Return one line for the reader of the task."""
        if not summary:
            return "nothing was to be compacted"
        totals = summary["totals"]
        freed = totals["bytes_before"] - totals["bytes_after"]
        return f"run {summary['run_id']}: {freed / 1e6:,.1f} MB freed in {summary['seconds']:.0f} s"

    plan >> dry_run >> run >> report(run.output)
