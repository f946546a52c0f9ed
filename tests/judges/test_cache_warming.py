"""The first question of a run goes alone, so that the others find the instructions in the provider's cache."""

from __future__ import annotations

import json

import pytest

from tests.judges.dialogue import PROVIDERS, Served, question
from tests.judges.test_presets import Recorder, recorder
from undersong.judges.limits import RunLimits
from undersong.judges.protocol import open_judge

__all__ = ["recorder"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_question_leaves_before_the_first_one_is_answered(served: Served, provider: str) -> None:
    served.server.delay = 0.3
    judge = served.judge(provider, concurrency=8)
    evaluations = judge.evaluate([question(f"You owe me, {place}.", place=place) for place in range(8)])
    used = [each.reading.usage for each in evaluations if each.reading]
    assert [usage.cached > 0 for usage in used].count(False) == 1  # the server caches what it has answered


def test_a_first_question_that_fails_lets_the_others_go(served: Served) -> None:
    judge = served.judge(attempts=1, concurrency=4)
    texts = ["fault=500", *(f"You owe me, {place}." for place in range(3))]
    states = [each.state for each in judge.evaluate([question(text, place=n) for n, text in enumerate(texts)])]
    assert states == ["failed", "scored", "scored", "scored"]


def test_hosted_models_are_given_a_key_of_the_cache(recorder: Recorder) -> None:
    environment = {"OPENAI_BASE_URL": f"{recorder.address}/v1", "OPENAI_API_KEY": "sk-secret"}
    judge = open_judge("openai:gpt-6-luna", RunLimits(environment=environment, attempts=1))
    judge.evaluate([question(f"You owe me, {place}.", place=place) for place in range(2)])
    keys = {json.dumps(body.get("prompt_cache_key")) for _, _, body in recorder.seen}
    assert len(keys) == 1
    assert "undersong-" in keys.pop()
    own = open_judge(f"openai:m@{recorder.address}/v1", RunLimits(attempts=1))
    own.evaluate([question("You owe me.")])
    assert "prompt_cache_key" not in recorder.seen[-1][-1]
