"""A text that is posted again and again is shown once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.report.pages import written
from undersong.models import Case, Row
from undersong.report.opening_choice import Point, chosen_points
from undersong.report.reposts import is_repost

Make = Callable[..., tuple[Case, list[Row]]]
POST = "Move your keys to the new vault before midnight, the old one is closing for good."


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (POST, True),
        (POST.replace(", the old", " – the old"), True),
        (POST.replace(" ", "\n"), True),
        ("Move your chairs to the new hall before noon, the old one is being painted.", False),
        ("Move your keys", False),
    ],
)
def test_a_repost_differs_in_next_to_nothing(other: str, same: bool) -> None:
    assert is_repost(POST, other) is same


def test_short_texts_are_alike_by_accident() -> None:
    assert not is_repost("Thank you!", "Thank you!")


def point(speaker: str, quote: str, place: int) -> Point:
    return Point(
        kind="moment", sentence=f"Turn {place}.", sure="", quote=quote, speaker=speaker, conversation=f"c{place}",
        message_id="m", id="m",
    )  # fmt: skip


def test_points_with_one_quote_by_one_speaker_are_one_with_a_count() -> None:
    points = chosen_points([[point("kira", POST, 1), point("kira", POST, 2), point("dev", POST, 3)]])
    assert [(each.speaker, each.sentence) for each in points] == [
        ("kira", "Turn 1. The same words stand in 1 more place."),
        ("dev", "Turn 3."),
    ]


def test_a_stage_of_reposts_is_one_quote_with_a_count_and_links(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    (finding,) = case.findings
    stages = tuple(("PRAISE", message_id) for message_id in finding.message_ids)
    cited = tuple(
        msgspec.structs.replace(each, text=POST) if each.id in finding.message_ids else each for each in case.cited
    )
    finding = msgspec.structs.replace(finding, stages=stages, quotes=())
    _, html, markdown, _ = written(
        msgspec.structs.replace(case, findings=(finding,), cited=cited), rows, tmp_path / "out"
    )
    more = len(finding.message_ids) - 1
    assert f"The same, nearly word for word, in {more} more messages" in html
    assert f"(the same, nearly word for word, in {more} more messages)" in markdown
