"""A bar chart of how many times as fast as Kafka's cleaner each engine is, as SVG. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from tests.bench.goals import SPEED_GOALS
from tests.bench.results import Results
from tests.bench.table import number
from tests.bench.workloads import COLD, KAFKA, LOCAL, LOCAL_COLD, MANY_KEYS, WARM

WIDTH, MARGIN, LABEL_WIDTH, VALUE_WIDTH = 760, 16, 120, 56
BAR_HEIGHT, ROW_HEIGHT, TITLE_HEIGHT = 11, 32, 46
COLORS = {"local": "#1f6feb", "Spark": "#e8873a"}
INK, GRID, KAFKAS = "#24292f", "#d0d7de", "#cf222e"
# 32 times as fast: beside it nothing else could be seen
LOGS = tuple(name for name in SPEED_GOALS if name != MANY_KEYS)
SIDES = {
    "Warm: a round in processes that run already": {"local": LOCAL, "Spark": WARM},
    "Cold: a whole command, everything started": {"local": LOCAL_COLD, "Spark": COLD},
}


class Group(NamedTuple):
    """Bars below one title."""

    title: str
    times: Mapping[str, Mapping[str, float]]  # as fast as Kafka's cleaner, by log and engine


def groups(results: Results) -> list[Group]:
    """Return what there are measurements for."""
    found = []
    for title, sides in SIDES.items():
        times: dict[str, dict[str, float]] = {}
        for name in LOGS:
            log = results.log(name)
            for engine, side in sides.items():
                if log and (ratio := log.ratio(KAFKA, side)):
                    times.setdefault(name, {})[engine] = ratio.of_medians
        if times:
            found.append(Group(title, times))
    return found


def draw(shown: Sequence[Group]) -> str:
    """Return an SVG document; lengths of bars are in proportion to their values."""
    heights = [TITLE_HEIGHT + ROW_HEIGHT * len(group.times) for group in shown]
    height = 2 * MARGIN + TITLE_HEIGHT + sum(heights)
    most = max(times for group in shown for row in group.times.values() for times in row.values())
    scale = (WIDTH - 2 * MARGIN - LABEL_WIDTH - VALUE_WIDTH) / most  # pixels for once Kafka's speed
    svg = Xml.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {height}"},
    )
    svg.set("font-family", "Helvetica, Arial, sans-serif")
    svg.set("font-size", "12")
    _rectangle(svg, (0, 0), (WIDTH, height), "#ffffff")
    _text(svg, MARGIN, MARGIN + 12, "Times as fast as Kafka's cleaner").set("font-weight", "bold")
    legend = WIDTH - MARGIN - 220
    for place, (engine, color) in enumerate(COLORS.items()):
        _rectangle(svg, (legend + 110 * place, MARGIN + 2), (BAR_HEIGHT, BAR_HEIGHT), color)
        _text(svg, legend + 110 * place + 18, MARGIN + 12, engine)
    top = MARGIN + TITLE_HEIGHT
    for group, group_height in zip(shown, heights, strict=True):
        _text(svg, MARGIN, top + 14, group.title)
        _lines(svg, top + TITLE_HEIGHT - 8, top + group_height - 6, most, scale)
        for row, (name, times) in enumerate(group.times.items()):
            _bars(svg, top + TITLE_HEIGHT + row * ROW_HEIGHT, name, times, scale)
        top += group_height
    Xml.indent(svg, " ")
    return Xml.tostring(svg, encoding="unicode") + "\n"


def _lines(svg: Xml.Element, top: float, bottom: float, most: float, scale: float) -> None:
    """Draw a line for each few times, and one for Kafka's own speed."""
    step = 2 if most < 20 else 5
    for times in (*range(0, int(most) + 1, step), 1):
        x = MARGIN + LABEL_WIDTH + times * scale
        line = Xml.SubElement(svg, "line", _lengths(x1=x, x2=x, y1=top, y2=bottom))
        line.set("stroke", KAFKAS if times == 1 else GRID)
        _text(svg, x, top - 2, "Kafka" if times == 1 else str(times)).set("text-anchor", "middle")


def _bars(
    svg: Xml.Element, top: float, name: str, times: Mapping[str, float], scale: float
) -> None:
    left = MARGIN + LABEL_WIDTH
    label = _text(svg, left - 8, top + BAR_HEIGHT + 4, name)
    label.set("text-anchor", "end")
    for place, (engine, color) in enumerate(COLORS.items()):
        if engine in times:
            y = top + place * (BAR_HEIGHT + 1)
            _rectangle(svg, (left, y), (times[engine] * scale, BAR_HEIGHT), color)
            _text(svg, left + times[engine] * scale + 5, y + 10, f"{number(times[engine])} ×")


def _rectangle(
    svg: Xml.Element, place: tuple[float, float], size: tuple[float, float], color: str
) -> None:
    (x, y), (width, height) = place, size
    rectangle = Xml.SubElement(svg, "rect", _lengths(x=x, y=y, width=width, height=height))
    rectangle.set("fill", color)


def _text(svg: Xml.Element, x: float, y: float, text: str) -> Xml.Element:
    element = Xml.SubElement(svg, "text", _lengths(x=x, y=y))
    element.set("fill", INK)
    element.text = text
    return element


def _lengths(**pixels: float) -> dict[str, str]:
    return {name: f"{value:.1f}" for name, value in pixels.items()}
