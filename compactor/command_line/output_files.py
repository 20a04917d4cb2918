"""The files that a command writes: `--report`, one of each form, and `--metrics`.

They are checked before the command begins, and written in one step. A report with {run_id} or
{date} in its name is a new file each time: if the name is taken, it gets -2 and so on. A name
without them is that of the last report, which the new one replaces; a file that is no report of
ours is not replaced.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain, count

from compactor.command_context import CommandContext
from compactor.errors import UsageError
from compactor.views.report_json import JsonObject, to_text
from storage.files.local import LOCAL


def require_writable(option: str, path: str) -> None:
    """Raise UsageError where the file of an option could not be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if not LOCAL.is_directory(folder):
        raise UsageError(f"{option} {path}: there is no directory {folder}")
    if LOCAL.is_directory(path):
        raise UsageError(f"{option} {path}: is a directory")
    if not LOCAL.is_permitted(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: no permission to write in {folder}")


@contextmanager
def atomic_output(path: str) -> Iterator[str]:
    """Give a temporary name to write a file under, and rename it at the end: nobody reads half."""
    temporary = f"{path}.tmp"
    try:
        yield temporary
        LOCAL.rename(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            LOCAL.remove(temporary)
        raise


JSON, HTML, CSV, PARQUET = ".json", ".html", ".csv", ".parquet"
METRICS_EXTENSION = ".prom"
EXTENSIONS = (JSON, HTML, CSV, PARQUET)
_BEGINNINGS = {  # of the reports that we write; of CSV by its first column
    JSON: b'{\n  "schema_version"',
    HTML: b"<!doctype html>",
    PARQUET: b"PAR1",
    CSV: b'"run_id"',
}


def report_files(paths: Sequence[str], context: CommandContext) -> tuple[str, ...]:
    """Return where the reports go.

    Raise UsageError for a name that cannot be written or would replace another file, and for two
    reports of one form.
    """
    found: dict[str, str] = {}  # by their endings, as they were given
    for path in paths:
        extension = os.path.splitext(path)[1].lower()
        if extension in found:
            raise UsageError(
                f"--report {path}: a second {extension} report, beside {found[extension]}; a run "
                "writes one of each form"
            )
        found[extension] = path
    return tuple(_report_file(path, context) for path in paths)


def _report_file(path: str, context: CommandContext) -> str:
    found = _with_values(path, context)
    extension = os.path.splitext(found)[1].lower()
    if extension not in EXTENSIONS:
        expected = ", ".join(EXTENSIONS)
        raise UsageError(f"--report {path}: unknown extension {extension!r}, expected {expected}")
    require_writable("--report", found)
    _require_replaceable(found, extension)
    return found


def write_report(path: str, document: JsonObject) -> None:
    """Write a report in one step, in the form that the ending of its name says."""
    extension = os.path.splitext(path)[1].lower()
    with atomic_output(path) as temporary:
        if extension in (CSV, PARQUET):
            _write_rows(temporary, extension, document)
            return
        with LOCAL.open_named(temporary, "wb") as out:
            out.write((_page(document) if extension == HTML else to_text(document)).encode())


def _with_values(path: str, context: CommandContext) -> str:
    date = datetime.fromtimestamp(context.started_at_ms / 1000, UTC).date().isoformat()
    named = path.replace("{run_id}", context.run_id).replace("{date}", date)
    if named == path:
        return path
    root, extension = os.path.splitext(named)
    names = chain([named], (f"{root}-{number}{extension}" for number in count(2)))
    return next(name for name in names if LOCAL.look_up(name) is None)


def _require_replaceable(path: str, extension: str) -> None:
    there = LOCAL.look_up(path)
    if there is None or there.size_bytes == 0:
        return
    with LOCAL.open_named(path) as file:
        begins = file.read(20)
    if not begins.startswith(_BEGINNINGS[extension]):
        raise UsageError(f"--report {path}: is there, is no report, and is not replaced")


def _write_rows(path: str, extension: str, document: JsonObject) -> None:
    from compactor.outcome.row_tables import write_rows
    from compactor.views.report_rows import columns_of, rows_of

    write_rows(rows_of(document), path, extension, columns_of(document["command"]))


def _page(document: JsonObject) -> str:
    from compactor.views.page.html import html_page

    return html_page(document)


def metrics_file(path: str | None) -> str | None:
    """Check the file of metrics: collectors look at one extension alone."""
    if path is None:
        return None
    if not path.endswith(METRICS_EXTENSION):
        raise UsageError(f"--metrics {path}: a collector takes only {METRICS_EXTENSION} files")
    require_writable("--metrics", path)
    return path
