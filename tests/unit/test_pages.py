"""Pages: HTML that shows what anybody wrote as it is, and pictures that lie where they should."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from pliant.figures import close_duration, duration, gpu_hours, number, percent
from pliant.pages import scales
from pliant.pages.drawn import Curve, drawn
from pliant.pages.html import Made, html
from pliant.pages.model import (
    Changes,
    Distributions,
    Lengths,
    Marked,
    OverSizes,
    OverTime,
    Page,
    Part,
    Picture,
    Stacks,
    Table,
    Tile,
)

HOSTILE = "<script>alert(1)</script>\"'&\u202e\x1b[31m"
MADE = Made(f"pliant compare {HOSTILE}", "2026-11-25 22:00 UTC")
PICTURES: list[Picture] = [
    Distributions("flow", HOSTILE, HOSTILE, {HOSTILE: (3.0, 40.0, 5000.0)}, HOSTILE, times=True),
    OverTime("held", HOSTILE, HOSTILE, {HOSTILE: (0.0, 60.0, (1.0, 4.0, 0.0))}, 4.0),
    OverSizes("sizes", HOSTILE, HOSTILE, (6, 12), HOSTILE, {HOSTILE: {HOSTILE: (2.0, 900.0)}}),
    Changes("users", HOSTILE, HOSTILE, [(HOSTILE, 0.5), ("bob", -0.25), ("eve", 0.0)], 0.01),
    Stacks(
        *("gpu-time", HOSTILE, HOSTILE),
        kinds=[("flagged", HOSTILE), ("idle", "idle")],
        bars=[(0.0, [(3.0, HOSTILE), (1.0, "idle")])],
        steps=2.0,
        most=HOSTILE,
        first=HOSTILE,
        last=HOSTILE,
    ),
    Lengths("waits", HOSTILE, HOSTILE, [(HOSTILE, "other", 2.0, HOSTILE)]),
]
PAGE = Page(
    f"Title {HOSTILE}",
    [f"Cluster {HOSTILE}"],
    [f"Lead {HOSTILE}", Marked("That is bad.", "worse")],
    [
        Part(
            HOSTILE,
            [HOSTILE],
            [HOSTILE, Marked(HOSTILE, "worse")],
            [
                Table(["user", HOSTILE], [[HOSTILE, "1"], ["bob", "2"]], HOSTILE, HOSTILE),
                Table(["job", "p"], [["7", Marked("2 h", "worse", "+12.0 %")]]),
                Table(["times", "words"], [["2", "the words"]], words=(1,)),
            ],
            PICTURES,
        )
    ],
    [Tile("-55.2 %", HOSTILE, "better"), Tile("11 of 120", "jobs fare worse", "worse")],
)


class Reader(HTMLParser):
    """What a browser would see: the tags, and the text in some of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.said.append(data.strip())


def test_a_page_shows_what_anybody_wrote_as_it_is() -> None:
    text = html(PAGE, MADE)
    read = Reader(text)
    assert read.open == []  # what was opened is closed
    assert "script" not in {tag for tag, _ in read.tags}
    assert "\u202e" not in text and "\x1b" not in text
    shown = HOSTILE.replace("\u202e", "?").replace("\x1b", "?")
    assert sum(shown in words for words in read.said) == 34  # each of its places
    assert f"pliant compare {shown}" in read.said


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    text = html(PAGE, MADE)
    assert re.findall(r"https?:|@import|url\(|<script|<link|<iframe|<img| on\w+=\"", text) == []
    assert "default-src 'none'; style-src 'unsafe-inline'\"" in text
    read = Reader(text)
    assert not {"href", "src"} & {name for _, given in read.tags for name in given}
    assert [tag for tag, _ in read.tags].count("h1") == 1
    assert ("html", {"lang": "en"}) in read.tags
    assert next(at for tag, at in read.tags if tag == "th")["scope"] == "col"
    assert "prefers-color-scheme: dark" in text


def test_results_and_pictures_come_first_and_how_it_was_made_last() -> None:
    text = html(PAGE, MADE)
    places = [text.index(words) for words in ("tiles", "lead", "<figure>", "<table", "<footer>")]
    tags = [
        text.index(f'<{tag} class="{name}">') for tag, name in (("ul", "tiles"), ("div", "lead"))
    ]
    assert tags == sorted(tags)
    assert places[2:] == sorted(places[2:])
    assert "Made 2026-11-25 22:00 UTC by Pliant" in text


def test_what_is_worse_is_said_in_words_and_not_by_colour_alone() -> None:
    text = html(PAGE, MADE)
    marked = re.findall(r'<(\w+)[^>]* class="(?:number )?worse"[^>]*>(.*?)</\1>', text)
    assert len(marked) == 5  # a tile, a sentence, an item, a cell, a user's change
    for _, inside in marked:
        assert "✗ worse" in inside
    assert '<td class="number worse">2 h<span class="more">+12.0 % <span' in text
    assert '<th scope="row">the words' not in text  # a row is named by its first column alone


def test_lines_lie_within_their_picture() -> None:
    for picture in PICTURES:
        for panel in drawn(picture).panels:
            for shape in panel.shapes:
                points = shape.points if isinstance(shape, Curve) else [(shape.x, shape.y)]
                assert all(-1e-9 <= at <= 100 + 1e-9 for point in points for at in point)
            assert all(-1e-9 <= tick.place <= 100 + 1e-9 for tick in panel.ticks)


@pytest.mark.parametrize("line", [(0, 0), (1, 1), (3, 4e6), (1, float("inf")), (float("inf"),) * 2])
def test_distributions_are_drawn_whatever_is_in_them(line: tuple[float, float]) -> None:
    for times in (False, True):
        (panel,) = drawn(Distributions("x", "x", "x", {"p": line}, "x", times=times)).panels
        (curve,) = panel.shapes
        assert isinstance(curve, Curve)
        assert all(0 <= at <= 100 for point in curve.points for at in point)


def test_a_line_goes_across_and_then_up() -> None:
    (panel,) = drawn(OverTime("x", "x", "x", {"p": (10.0, 5.0, (4.0, 4.0, 1.0))}, 4.0)).panels
    (area,) = panel.shapes
    assert isinstance(area, Curve)
    assert area.filled
    across = [0, 0, 100 / 3, 200 / 3, 200 / 3, 100, 100, 100]
    assert [x for x, _ in area.points] == pytest.approx(across)
    assert [y for _, y in area.points] == [100, 0, 0, 0, 75, 75, 100, 100]


def test_changes_to_both_sides_begin_at_nothing() -> None:
    worse, better, same = drawn(PICTURES[3]).rows
    assert (worse.start, worse.width, worse.mark) == pytest.approx((100 / 3, 200 / 3, "worse"))
    assert (better.start, better.width, better.mark) == pytest.approx((0, 100 / 3, "better"))
    assert (same.start, same.width, same.mark) == pytest.approx((100 / 3, 0, ""))


def test_what_is_no_picture_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="Picture is no picture that is drawn"):
        drawn(Picture("x", "x", "x"))


def test_axes_have_round_ticks() -> None:
    least, most, ticks = scales.of_distributions([(30.0, 90_000.0)], times=True)
    assert (least, most) == (30, 90_000)
    assert [words for _, words in ticks][:2] == ["1 min", "5 min"]
    assert scales.of_values([0.0, 9.0]) == (
        False,
        [(0, "0"), (2, "2"), (4, "4"), (6, "6"), (8, "8")],
    )
    assert scales.of_values([0.0]) == (False, [(0, "0")])
    assert scales.of_values([1.0, 50.0])[0]
    assert scales.of_time(5 * 3600.0) == [
        (0, "0"), (3600, "60 min"), (7200, "2 h"), (10800, "3 h"), (14400, "4 h"), (18000, "5 h")
    ]  # fmt: skip


def test_figures_are_written_as_people_say_them() -> None:
    assert (number(123456.7), number(0.123456), number(12.0)) == ("123457", "0.1235", "12")
    assert (percent(-0.1), percent(0.1234), percent(None)) == ("-10.0 %", "+12.3 %", "")
    assert [duration(of) for of in (0, 45.4, 89, 90, 5400, 7800, 187_200)] == [
        "0 s", "45 s", "89 s", "2 min", "1 h 30 min", "2 h 10 min", "2 d 4 h"
    ]  # fmt: skip
    assert [close_duration(of) for of in (0, 4.271, 74.68, 99.97, 114.4, 3600, 4412, 79302)] == [
        "0 s", "4.27 s", "74.7 s", "1 min 40 s", "1 min 54 s", "1 h", "1 h 14 min", "22 h 2 min"
    ]  # fmt: skip
    assert (gpu_hours(90), gpu_hours(4711 * 3600)) == ("0.025 GPU-h", "4711 GPU-h")
