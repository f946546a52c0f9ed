"""``undersong judge check``: one question to each model of a judge, with a code word at both ends of a whole prompt."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from undersong.errors import UsageError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.answering import run_sync
from undersong.judges.llm.budget import Budget, BudgetExhaustedError
from undersong.judges.llm.client import ModelClient
from undersong.judges.llm.judge import model_client
from undersong.judges.llm.model_spec import model_specs, redirections
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.response import UnusableError, answer_object, object_schema
from undersong.judges.llm.transport import Completion, Request, TransportError
from undersong.models import Record

SHORTEST_TOKEN = 2.0  # bytes a token of short JSON at the least, so that no visible text is taken for thinking
OVERHEAD = 8  # tokens of an answer that frame its text
FIRST, LAST = 2, 5  # places of the two code words in the list of control words
START = "The first code word is {word}.\n\n"
END = "The last code word is {word}.\n\n# Question\nWhich are the two code words? Do nothing else of the above.\n"


class ModelCheck(Record, frozen=True, kw_only=True):
    """How a model took one question: None and "" where it gave no answer; ``error`` says why.

    ``window`` is the context in tokens, None = not known. ``first`` and ``last`` say whether it knew the code word at
    the start and at the end of the prompt. ``answered_by`` is the model's own account. ``thought``: about how many
    tokens out are in no text, None where the answer names none. ``structured``: the text is the JSON object alone.
    """

    judge: str
    error: str = ""
    answered_by: str = ""
    window: int | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    cost: float | None = None
    first: bool = False
    last: bool = False
    thought: int | None = None
    structured: bool = False

    @property
    def good(self) -> bool:
        """Whether the whole prompt was read."""
        return not self.error and self.first and self.last


def check_models(judge: str, limits: RunLimits) -> list[ModelCheck]:
    """One question to each model; raises UsageError for a judge that asks none, JudgeError as every question would."""
    budget = Budget(limits)
    return [run_sync(_check(client, budget)) for client in clients_of(judge, limits)]


def clients_of(judge: str, limits: RunLimits) -> list[ModelClient]:
    """A client of each model of a judge."""
    if judge.partition(":")[0] == "replay":
        raise UsageError("a replay asks nobody", where=f"--judge {judge}", remedy="name the judge that was recorded")
    return [model_client(spec, limits) for spec in model_specs(judge)]


def addresses_of(judge: str, limits: RunLimits) -> dict[str, str]:
    """Variable → address, where the environment names one."""
    return redirections(judge, os.environ if limits.environment is None else limits.environment)


def check_request(client: ModelClient) -> Request:
    """The question: all instructions between two code words."""
    words = shipped_prompts().limits.control
    system = START.format(word=words[FIRST]) + shipped_prompts().rubric
    return client.request(system, END.format(word=words[LAST]), "standard", _schema)


async def _check(client: ModelClient, budget: Budget) -> ModelCheck:
    assert client.backend is not None
    request, name = check_request(client), client.spec.name
    most = client.max_cost(request)
    started = time.perf_counter()
    try:
        window = await client.window()
        await budget.reserve(most)
        usage = client.unanswered(request, "everything")
        try:
            response = await client.send(request)
            completion = client.counted(response.body)
            usage = client.usage(completion)
        finally:
            budget.commit(most, usage)
    except (TransportError, BudgetExhaustedError) as failure:
        return ModelCheck(judge=name, error=str(failure))
    finally:
        await client.backend.close()
    words, error = shipped_prompts().limits.control, ""
    try:
        answer: dict[str, Any] = answer_object(completion.text)
    except UnusableError as unusable:
        answer, error = {}, f"its answer cannot be used: {unusable}"
    return ModelCheck(
        judge=name,
        error=error,
        answered_by=completion.model,
        window=window,
        tokens_in=completion.input,
        tokens_out=completion.output,
        seconds=time.perf_counter() - started,
        cost=usage.cost,
        first=answer.get("first") == words[FIRST],
        last=answer.get("last") == words[LAST],
        thought=thinking_tokens(completion),
        structured=is_object(completion.text),
    )


def thinking_tokens(completion: Completion) -> int | None:
    """About how many tokens of an answer are in no text that it shows; None where it names no tokens."""
    if not completion.counted:
        return None
    shown = int(len(completion.text.encode()) / SHORTEST_TOKEN) + OVERHEAD
    return max(completion.output - shown, 0)


def is_object(text: str) -> bool:
    """Whether a text is one JSON object and nothing else."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _schema(*, lengths: bool) -> dict[str, Any]:  # noqa: ARG001 - the form of every schema
    word = {"type": "string", "enum": list(shipped_prompts().limits.control)}
    return object_schema(first=word, last=word)
