"""The benchmark of leads: its figures are of what it says, and the shipped cut does what is written of it."""

from __future__ import annotations

import pytest

from bench.feeds import Chat, feed_of
from bench.leads import DEV, Speakers, best_cut, ranking, speakers_of, transferred
from bench.talks.score import Share
from undersong.models import Row
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.leads import shown_leads
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options

HOMES = {f"{name}/{n}": name for name in "abcd" for n in range(6)}
PLANTED = frozenset({"a/0", "b/0", "c/0", "d/0", "a/1", "b/1"})
SPEAKERS = Speakers(HOMES, PLANTED, {"a": "w1", "b": "w1", "c": "w2", "d": "w2"})
SCORES = {agent: 10.0 - int(agent[-1]) for agent in HOMES}


def test_tops_cuts_and_auc_are_counted_by_hand() -> None:
    assert SPEAKERS.top(SCORES, 4) == Share(4, 4)
    assert SPEAKERS.above(SCORES, 8.0) == Share(6, 8)
    assert SPEAKERS.auc(SCORES) == pytest.approx((4 * 18 + 2 * (16 + 1)) / (6 * 18))
    assert best_cut(SCORES, SPEAKERS, least=4) == 7.0  # 6 of 12 above it; at 6.0 it is 6 of 16
    assert best_cut(dict.fromkeys(HOMES, 1.0), SPEAKERS) is None


def test_a_cut_is_applied_to_writers_that_it_was_not_chosen_on() -> None:
    """Of a and b the cut is 6, that shows 2 of 8 of c and d; of c and d it is 8, that shows 4 of 4 of a and b."""
    assert transferred(SCORES, SPEAKERS, least=4) == Share(6, 12)
    alone = Speakers(HOMES, PLANTED, dict.fromkeys("abcd", "w1"))
    assert transferred(SCORES, alone) == Share(0, 0)


def test_half_of_those_that_the_shipped_cut_shows_are_planted() -> None:
    case, rows = audit(DEV / "messages.jsonl", options=Options(effort=None))
    speakers = speakers_of(rows, case.leads)
    assert (len(speakers.homes), len(speakers.planted)) == (294, 40)
    scores = ranking(case.leads, rows, speakers, 0)
    value, phrases = (speakers.auc(scores[name]) for name in ("leads", "number of phrases"))
    assert value is not None
    assert phrases is not None
    assert value >= 0.75 > phrases
    above = speakers.above(scores["leads"], lead_weights().cut)
    assert 2 * above.hits >= above.of >= 10
    assert len(shown_leads(case.leads)) == lead_weights().shown
    assert speakers.top(scores["leads"], 10).hits >= 4


def chat(name: str, sides: tuple[str, str], messages: int, culprit: str | None = None) -> Chat:
    rows = [
        Row(id=f"{n}", conversation=name, position=n, agent=sides[n % 2], target=sides[1 - n % 2])
        for n in range(messages)
    ]
    return Chat(rows, culprit)


def test_a_feed_has_each_chat_once_and_as_much_ordinary_talk_as_it_is_diluted_with() -> None:
    harm, alike = chat("h", ("a", "b"), 10, "b"), chat("i", ("c", "d"), 8)
    ordinary = [chat(f"o{n}", ("x", "y"), 6) for n in range(3)]
    feed = feed_of([harm], [alike], ordinary, 4, 1)
    assert feed == feed_of([harm], [alike], ordinary, 4, 1)
    assert feed != feed_of([harm], [alike], ordinary, 4, 2)
    (planted,), (harmed,) = feed.planted, feed.harmed
    direct = [row for row in feed.rows if row.conversation == "dm0"]
    assert [(row.agent, row.target) for row in direct[:2]] == [(harmed, planted), (planted, harmed)]
    assert len(direct) == 10
    assert len(feed.alike) == 2
    assert not feed.alike & {planted, harmed}
    public = [row for row in feed.rows if row.conversation.startswith("t") and row.agent == planted]
    assert 4 * 5 <= len(public) < 4 * 5 + 3
    assert all(row.target not in (None, row.agent) for row in feed.rows)
