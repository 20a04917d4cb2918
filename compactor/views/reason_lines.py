"""Why logs are not cleaned, for a person: each reason once, with how many logs it is of."""

from collections.abc import Callable, Sequence

from rich.text import Text

from compactor.host.printable import first_few, one_line
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.reason_codes import ReasonCode
from compactor.views.fitting_table import whole_words
from compactor.views.report_totals import ReasonGroup, group_reasons

SHOWN_NAMES = 3
_GAP = "  "


def reason_lines(
    logs: Sequence[LogReport],
    shown: int | None,
    width: int,
    rest: str,
    brief: Callable[[ReasonCode], str] = lambda _: "",
) -> list[Text]:
    """The first reasons (None: all), those of most logs first.

    rest: where the others are told. brief: what helps, in few words.
    """
    groups = group_reasons(logs)
    counts = [f"{len(group.names):,}" for group in groups[:shown]]
    others = sum(len(group.names) for group in groups[len(counts) :])
    longest = max(map(len, [*counts, f"{others:,}" if others else ""]))
    lines: list[Text] = []
    for count, group in zip(counts, groups, strict=False):
        lines += _with_count(count.rjust(longest), _told(group, width - longest, brief))
    if others:
        lines.append(Text(f"{others:>{longest},}{_GAP}for other reasons ({rest})", "dim"))
    return lines


def _told(group: ReasonGroup, width: int, brief: Callable[[ReasonCode], str]) -> list[Text]:
    failed = group.status is LogStatus.FAILED
    reason = f"{'failed: ' if failed else ''}{one_line(group.reason)}"
    room = width - len(_GAP)
    lines = whole_words(reason, room, "red" if failed else "")
    lines += whole_words(first_few(group.names, SHOWN_NAMES), room, "dim")
    helps = brief(group.reason_code) if group.reason_code else ""
    return lines + whole_words(f"→ {helps}", room) if helps else lines


def _with_count(count: str, lines: Sequence[Text]) -> list[Text]:
    before = [f"{count}{_GAP}", *[" " * len(f"{count}{_GAP}")] * (len(lines) - 1)]
    told = [Text.assemble(blanks, line) for blanks, line in zip(before, lines, strict=True)]
    for text in told:
        text.no_wrap, text.overflow = True, "ignore"
    return told
