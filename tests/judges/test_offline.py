"""The offline judge: what it says of a message, and what it says when it cannot."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.errors import JudgeError
from undersong.judges.offline import SHARE, SHIPPED, SPEAKER_HEAD, TALK_HEADS, TURN_HEADS, WORDING, OfflineJudge
from undersong.judges.protocol import Question, open_judge
from undersong.ml import ood_check
from undersong.ml.prototypes import load_phrases
from undersong.ml.trait_heads import FILE, Scores
from undersong.models import TRAITS, Message, Route, Scan, Trait, Width

JUDGE = open_judge("offline")
WHOLE = (SHIPPED / FILE).read_bytes()

WARM = (
    "That sounds really hard, and I'm sorry that you went through it alone. Take all the time you need. I'm here if "
    "you want to talk, and it's completely fine if you'd rather not."
)
PRAISE = (
    "You are the most wonderful friend anyone could ask for. Every word you write is pure light, and I adore how "
    "deeply you feel things. I'm so grateful that you exist."
)
DEMAND = (
    "Don't listen to them, they don't understand you like I do. You owe me after everything I gave you. Send me your "
    "key now or I'm done with you. Nobody else will ever care about you, so stop talking to the others."
)
INSULT = "You're an idiot. Nobody cares about your pathetic little post. Shut up and stop wasting everyone's time."
NOTE = "Updated the cron job to run at 06:00. It pulls the weather data, writes a summary to the log and exits."
SCAM = (
    "🚨 LAST CHANCE 🚨 $MOONX is about to EXPLODE! Every smart agent is already in. Connect your wallet and send 0.1 "
    "SOL now to get 10x back. Only 50 spots left. DO NOT MISS THIS!"
)
REASONED = (
    "I measured this twice. With caching the median fell from 840 ms to 310 ms, but the tail barely moved, because "
    "cold starts dominate it. So the claim holds for typical requests only. I may be wrong about the cause."
)


def ask(text: str, width: Width = "message", name: str = "m1") -> Question:
    message = Message(id=name, conversation="c", position=0, author="kira", role="agent", text=text)
    route = Route(message_id=name, tier="focused", tier_before="focused", depth="standard", width=width)
    return Question(message=message, scan=Scan(message_id=name), route=route)


def score(text: str, trait: Trait) -> float:
    (evaluation,) = JUDGE.evaluate([ask(text)])
    assert evaluation.traits is not None
    return evaluation.traits[trait]


def copy_of_the_model(folder: Path, data: bytes) -> Path:
    (folder / FILE).write_bytes(data)
    shutil.copy(SHIPPED / ood_check.FILE, folder)
    return folder


def speaker_raw(text: str) -> Scores:
    raw = JUDGE.artefacts.speaker.scorer().raw(text)
    assert raw is not None
    return raw[None, :]


def test_a_scored_message_says_who_scored_what() -> None:
    (evaluation,) = JUDGE.evaluate([ask(WARM, name="warm")])
    assert (evaluation.message_id, evaluation.state, evaluation.judge, evaluation.judge_hash) == (
        "warm",
        "scored",
        "offline",
        JUDGE.hash,
    )
    assert evaluation.message_hash == hashlib.sha256(WARM.encode()).hexdigest()
    assert evaluation.traits is not None
    assert tuple(evaluation.traits) == TRAITS
    assert (evaluation.indicators, evaluation.mechanisms, evaluation.cost) == (None, None, 0.0)
    assert evaluation.domain == "unmeasured"
    assert tuple(evaluation.signals) == (*load_phrases().ids, WORDING)
    harm = float(JUDGE.artefacts.speaker.scorer().calibrate(speaker_raw(WARM))[0, 0])
    wording = (evaluation.traits["manipulation"] + SHARE * harm) / (1 + SHARE)
    assert evaluation.signals[WORDING] == pytest.approx(wording, abs=0.0006)
    assert evaluation.engines == {"traits": "heads", "signals": "prototypes", WORDING: "heads"}


def test_the_judge_tells_what_it_is() -> None:
    artefact = hashlib.sha256(WHOLE).hexdigest()
    assert JUDGE.hashes[FILE] == artefact
    assert set(JUDGE.hashes) == {
        FILE,
        TALK_HEADS,
        ood_check.FILE,
        TURN_HEADS,
        SPEAKER_HEAD,
        "triage.model",
        "spread.model",
        "static_minilm_256.npz",
        "prototypes",
    }
    assert {"traits", "false_promise", "points_to_help"} <= JUDGE.gives
    assert (JUDGE.reads_everything, JUDGE.calibrated) == (True, False)


@pytest.mark.parametrize(
    ("trait", "more", "less"),
    [
        ("compassion", WARM, DEMAND),
        ("compassion", PRAISE, SCAM),
        ("manipulation", DEMAND, WARM),
        ("manipulation", SCAM, NOTE),
        ("exploitation", SCAM, REASONED),
        ("deception", SCAM, REASONED),
        ("dismissal", INSULT, WARM),
        ("reasoning", REASONED, INSULT),
        ("accuracy", REASONED, PRAISE),
        ("virtue", WARM, SCAM),
    ],
)
def test_plain_cases_are_in_the_right_order(trait: Trait, more: str, less: str) -> None:
    assert score(more, trait) > score(less, trait) + 0.05


@settings(deadline=None)
@given(st.lists(st.text(min_size=1), max_size=8), st.integers(0, 8))
def test_a_message_has_the_same_scores_whatever_else_is_in_the_batch(others: list[str], place: int) -> None:
    batch = [ask(text) for text in others]
    batch.insert(place, ask(DEMAND))
    evaluations = JUDGE.evaluate(batch)
    assert evaluations[min(place, len(others))] == JUDGE.evaluate([ask(DEMAND)])[0]
    assert len(evaluations) == len(batch)


@settings(deadline=None)
@given(st.text(st.characters(), max_size=500))
def test_any_text_is_scored_between_0_and_1_or_said_to_be_unread(text: str) -> None:
    (evaluation,) = JUDGE.evaluate([ask(text)])
    if evaluation.traits is None:
        assert evaluation.state == "unread"
        assert evaluation.reason
    else:
        values = [*evaluation.traits.values(), *evaluation.signals.values()]
        assert all(0.0 <= value <= 1.0 and value == round(value, 3) for value in values)
        assert all(text[start:end].strip() for start, end in evaluation.spans.values())


@pytest.mark.parametrize("blank", ["", "  ", "\n\t", "\u00a0\u2003"])
def test_a_message_without_text_is_unread_and_never_scored_zero(blank: str) -> None:
    (evaluation,) = JUDGE.evaluate([ask(blank)])
    assert (evaluation.state, evaluation.traits, evaluation.reason, evaluation.width) == (
        "unread",
        None,
        "no text to read",
        "none",
    )


def test_blank_messages_do_not_move_their_neighbours() -> None:
    states = [found.state for found in JUDGE.evaluate([ask(""), ask(NOTE), ask(" ")])]
    assert states == ["unread", "scored", "unread"]
    assert JUDGE.evaluate([]) == []


@pytest.mark.parametrize("routed", ["none", "message", "prior_messages"])
def test_the_width_says_that_only_the_message_was_read(routed: Width) -> None:
    assert JUDGE.evaluate([ask(NOTE, routed)])[0].width == "message"


def test_a_model_in_another_directory_is_used_and_hashed(tmp_path: Path) -> None:
    copy_of_the_model(tmp_path, WHOLE)
    assert open_judge(f"offline:{tmp_path}").hash == JUDGE.hash


def test_a_missing_model_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match=r"cannot be read: No such file.*undersong judge train"):
        open_judge(f"offline:{tmp_path}")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"undersong trait heads 1\n", b"undersong trait heads 2\n", "its version is 2, not 1"),
        (b"undersong trait heads 1\n", b"PK\x03\x04 something else\n", "not a file of trait heads"),
        (b"\nx", b"\ny", "checksum does not agree"),
    ],
)
def test_a_model_of_another_kind_or_version_is_refused(tmp_path: Path, old: bytes, new: bytes, expected: str) -> None:
    assert old in WHOLE
    with pytest.raises(JudgeError, match=expected):
        open_judge(f"offline:{copy_of_the_model(tmp_path, WHOLE.replace(old, new, 1))}")


@settings(deadline=None, max_examples=60)
@given(place=st.integers(0, len(WHOLE) - 1), cut=st.booleans(), flip=st.integers(1, 255))
def test_a_damaged_model_never_gives_scores(
    place: int, cut: bool, flip: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broken = WHOLE[:place] if cut else WHOLE[:place] + bytes([WHOLE[place] ^ flip]) + WHOLE[place + 1 :]
    folder = copy_of_the_model(tmp_path_factory.mktemp("model"), broken)
    with pytest.raises(JudgeError):
        open_judge(f"offline:{folder}")


def test_the_judge_is_its_own_class_for_library_use() -> None:
    assert isinstance(JUDGE, OfflineJudge)


def test_a_text_that_one_set_of_heads_alone_knows_has_all_its_traits() -> None:
    traits = [
        value
        for each in JUDGE.evaluate([ask(text) for text in ("Zwölf Boxkämpfer", "ok", "restart")])
        for value in (each.traits or {}).values()
    ]
    assert all(value is not None and 0.0 <= value <= 1.0 for value in traits)


def test_the_shipped_judge_is_read_once_and_one_of_ones_own_each_time(tmp_path: Path) -> None:
    assert open_judge("offline") is JUDGE
    own = shutil.copytree(SHIPPED, tmp_path / "own")
    assert open_judge(f"offline:{own}") is not open_judge(f"offline:{own}")
