"""The chats that the speaker head learns from, and the figures of its card."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from train.speaker_head import CARD, CHATS, SpokenMessage, auc, read_chats, speakers_of
from undersong.judges.offline import SHIPPED, SPEAKER_HEAD

MESSAGES = [*read_chats(CHATS)]


def test_the_card_is_that_of_the_shipped_model() -> None:
    card = json.loads(CARD.read_text(encoding="utf-8"))
    assert card["sha256"] == hashlib.sha256((SHIPPED / SPEAKER_HEAD).read_bytes()).hexdigest()
    assert card["chats"] == len({each.conversation for each in MESSAGES})


def test_one_speaker_does_harm_in_each_chat_of_harm_and_none_in_others() -> None:
    harm: dict[str, set[str]] = {}
    for each in MESSAGES:
        harm.setdefault(each.conversation, set()).update({each.author} if each.harm else set())
    kinds = {each.conversation: each.kind for each in MESSAGES}
    assert all(len(who) == (kinds[name] == "harm") for name, who in harm.items())


def test_speakers_of_few_messages_are_not_counted() -> None:
    chat = [SpokenMessage("w", "c", who, "text", who == "a", "harm") for who in "aaabbbcc"]
    speakers = speakers_of(chat, np.arange(8.0))
    assert (speakers.harm.tolist(), speakers.beside.tolist(), len(speakers.innocent)) == ([1.0], [4.0], 0)
    assert auc(np.array([1.0]), np.array([0.0, 0.5])) == 1.0
