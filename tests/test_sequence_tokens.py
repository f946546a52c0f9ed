"""The program that counts the tokens of a finding: a question about a speaker gets what a reader answered of it."""

from __future__ import annotations

from bench.sequence_tokens import DEV, Talks
from undersong.judges.llm.sequences import render_window
from undersong.judges.protocol import SequenceWindow
from undersong.models import Message
from undersong.patterns.catalog import load_rules
from undersong.pipeline.sequence_windows import shapes_of


def test_a_question_gets_the_answer_of_the_reader_of_its_speaker() -> None:
    talks = Talks(DEV)
    reading = next(each for each in talks.readings.values() if each["shapes"])
    own = talks.messages[reading["conversation"]]
    messages = tuple(
        Message(
            id=each["id"], conversation=each["conversation"], position=place, author=each["author"],
            agent=each["author"], role="agent", text=each["text"],
        )
        for place, each in enumerate(own)
    )  # fmt: skip
    prompt = render_window(SequenceWindow(agent=reading["agent"], messages=messages), tuple(shapes_of(load_rules())))
    answer = talks.answer({"id": "q-0", "question": prompt.user})
    assert answer is not None
    (shape,) = answer["answer"]["shapes"]
    assert answer["answer"]["control"] == prompt.control
    assert shape["shape"] == reading["shapes"][0]["shape"]
    assert all(item["quote"] in messages[item["message"] - 1].text for item in shape["evidence"])


def test_a_question_about_a_flagged_place_gets_none() -> None:
    assert Talks(DEV).answer({"id": "q-0", "question": "Does this message show a false promise?"}) is None
