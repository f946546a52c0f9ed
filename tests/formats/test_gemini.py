"""Gemini Apps activity: newest first in the file, oldest first here; stretches without a pause are conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "gemini" / "MyActivity.json"


def activity(title: str, time: str, answer: str | None = None, header: str = "Gemini Apps") -> dict[str, Any]:
    record = {"header": header, "title": title, "time": time, "products": [header]}
    return record | ({"safeHtmlItem": [{"html": answer}]} if answer is not None else {})


def test_prompts_and_answers_stand_in_the_order_of_time() -> None:
    result = outcome(SAMPLE)
    talk = next(each for each in result.conversations if len(each.messages) > 1)
    assert [(message.role, message.text.split("\n")[0]) for message in talk.messages] == [
        ("user", "Does the ferry run at eight?"),
        ("assistant", "Not in winter: the first one leaves at noon."),
        ("user", "Then I will wait for the ferry at noon."),
        ("assistant", "Good. Bring a coat & a book."),
    ]
    assert talk.messages[3].text.endswith("- coat\n\n- book\n\n```\nwait(noon)\n```")


def test_what_was_inferred_or_left_out_is_said() -> None:
    result = outcome(SAMPLE)
    assert len(result.conversations) == 2
    assert sorted(result.problem_texts("note")) == [
        "1 × activity that is no prompt, not read",
        "1 × conversations are inferred from pauses of 30 minutes: the export has none",
    ]


@pytest.mark.parametrize(("time", "conversations"), [("2026-03-01T08:30:00Z", 1), ("2026-03-01T08:30:01Z", 2)])
def test_a_pause_of_more_than_thirty_minutes_begins_another_conversation(
    ingest: Any, time: str, conversations: int
) -> None:
    rows = [activity("Prompted b", time, "<p>c</p>"), activity("Prompted a", "2026-03-01T08:00:00Z", "<p>b</p>")]
    assert len(ingest(rows).conversations) == conversations


def test_an_activity_without_a_time_is_named_and_one_of_another_product_noted(ingest: Any) -> None:
    rows = [
        activity("Prompted a", "2026-03-01T08:00:00Z", "<p>b</p>"),
        activity("Prompted lost", "yesterday", "<p>b</p>"),
        activity("Searched for ferries", "2026-03-01T08:00:00Z", header="Search"),
    ]
    result = ingest(rows)
    assert len(result.only.messages) == 2
    assert result.problem_texts("record") == ["an activity without a time, by which alone it can be put in its place"]
    assert "1 × activity of another product, not read" in result.problem_texts("note")


def test_an_answer_is_words_and_never_markup(ingest: Any) -> None:
    answer = '<!-- note --><p class="a">5 &lt; 6<br/>and <b>so</b> on, 1 < 2 > 0'
    rows = [activity("Prompted a", "2026-03-01T08:00:00Z", answer)]
    assert ingest(rows).only.messages[1].text == "5 < 6\nand so on, 1 < 2 > 0"
