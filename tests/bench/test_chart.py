"""Bars are as long as their values say, and of the logs that were measured."""

from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest

from tests.bench.chart import COLORS, Group, draw, groups
from tests.bench.results import Results
from tests.bench.samples import log_result

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_ratios_of_medians_of_the_logs_that_have_a_goal() -> None:
    txn = log_result("100k-txn")
    for side in ("cold", "local-cold", "local"):
        del txn.samples[side]
    logs = log_result("60m-keys"), log_result("7-segments"), log_result("100b-none"), txn
    warm, cold = groups(Results({}, logs=logs))
    assert warm.times == {"100b-none": {"local": 6.25, "Spark": 5}, "100k-txn": {"Spark": 5}}
    assert cold.times == {"100b-none": {"local": 2.5, "Spark": 1.25}}
    assert (warm.title.split(":")[0], cold.title.split(":")[0]) == ("Warm", "Cold")
    without_kafka = replace(txn, samples={"warm": txn.samples["warm"]})
    assert groups(Results({}, logs=(without_kafka,))) == []


def test_bars_are_drawn_in_proportion() -> None:
    times = {"a": {"local": 12.0, "Spark": 8.0}, "<b>": {"Spark": 0.4}}
    svg = Xml.fromstring(draw([Group("Warm", times), Group("Cold", {"a": {"local": 3.0}})]))
    widths = {
        engine: [
            float(bar.attrib["width"])
            for bar in svg.iter(f"{SVG}rect")
            if bar.attrib["fill"] == color
            and float(bar.attrib["x"]) < 400  # the legend's are right
        ]
        for engine, color in COLORS.items()
    }
    most = widths["local"][0]
    assert widths["local"] == pytest.approx([most, most / 4], abs=0.1)
    assert widths["Spark"] == pytest.approx([most * 2 / 3, most / 30], abs=0.1)
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert [text for text in texts if text and text.endswith("×")] == [
        "12.0 ×", "8.00 ×", "0.40 ×", "3.00 ×",
    ]  # fmt: skip
    assert {"a", "<b>", "Warm", "Cold"} <= set(texts)
    [kafka] = {
        float(line.attrib["x1"])
        for line in svg.iter(f"{SVG}line")
        if line.attrib["stroke"] != "#d0d7de"
    }
    left = min(float(line.attrib["x1"]) for line in svg.iter(f"{SVG}line"))
    assert kafka - left == pytest.approx(most / 12, abs=0.1), "Kafka's own speed"


def test_everything_is_within_the_picture() -> None:
    svg = Xml.fromstring(draw([Group("Warm", {f"log {n}": {"local": n} for n in range(1, 9)})]))
    *_, width, height = map(float, svg.attrib["viewBox"].split())
    for box in svg.iter(f"{SVG}rect"):
        x, y, wide, high = (float(box.get(name, "")) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height
