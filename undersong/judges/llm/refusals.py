"""What refusals teach: which parameters a server takes, how long an answer it allows, and when asking is hopeless."""

from __future__ import annotations

import copy
import re
from functools import cache
from math import ceil
from typing import Any

from undersong.datafiles.yaml_loader import RULES, DataFile, read
from undersong.errors import JudgeError

LIMITS = ("max_completion_tokens", "max_tokens")  # the two names of the longest answer; a server takes one of them
EFFORTS = ("reasoning_effort", "effort")
# parameter as a refusal names it → where it stands in the body
PLACES: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "reasoning_effort": ("reasoning_effort",),
    "effort": ("output_config", "effort"),
    "prompt_cache_key": ("prompt_cache_key",),
    "seed": ("seed",),
    "response_format": ("response_format",),
    "json_schema": ("response_format",),
    "output_config": ("output_config", "format"),
    "output_format": ("output_config", "format"),
    "structured output": ("output_config", "format"),
}
JSON_OBJECT = {"type": "json_object"}  # instead of a schema: the prompt says the form, and answers are checked here
BYTES_PER_TOKEN = 3.0  # of a question whose tokens a server does not tell
RESERVE = 64  # tokens of a window that are left free for the template of the chat
_WINDOW = re.compile(r"(?:maximum context length is|context length of(?: only)?|context size \(?|n_ctx[\"']?:) *(\d+)")
_PROMPT = re.compile(r"(\d+) in the messages|(?<!at least )\b(\d+) input tokens|n_prompt_tokens[\"']?: *(\d+)")
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.-]*\w)")
_VARYING = re.compile(r"\b(?=\w*\d)\w{6,}\b|\d+")


class RefusalRules(DataFile, frozen=True, kw_only=True):
    """The whole of ``refusals.yaml``."""

    spent: tuple[str, ...]
    of_one_question: tuple[str, ...]
    unsupported: tuple[str, ...]
    unsupported_value: tuple[str, ...]
    smallest_limit: int
    without_success: int
    after_success: int
    time_outs: int


@cache
def refusal_rules() -> RefusalRules:
    """The shipped file, read once; raises RuleError with file and line."""
    return read(RULES / "refusals.yaml", RefusalRules)


def names_any(phrases: tuple[str, ...], text: str) -> bool:
    """Whether a text holds one of some phrases, in any case."""
    lowered = text.lower()
    return any(phrase in lowered for phrase in phrases)


class Parameters:
    """Which parameters a server takes, learned from its refusals; holds for the lifetime of a backend."""

    def __init__(self) -> None:
        self._limit_name: str | None = None
        self._json_object = False
        self._dropped: set[str] = set()
        self._cap: int | None = None
        self._window: int | None = None
        self._tokens_per_byte = 1 / BYTES_PER_TOKEN

    def fitted(self, body: dict[str, Any], size: int) -> dict[str, Any]:
        """A body as this server takes it; ``size``: UTF-8 bytes of its question."""
        body = copy.copy(body)
        name = next(each for each in LIMITS if each in body)
        limit = self.limit(body.pop(name), size)
        body[self._limit_name or name] = limit
        if self._json_object and "response_format" in body:
            body["response_format"] = JSON_OBJECT
        for dropped in self._dropped:
            _drop(body, PLACES[dropped])
        return body

    def limit(self, wanted: int, size: int) -> int:
        """The longest answer in tokens that may be asked for, of the one that is wanted."""
        if self._cap is not None:
            wanted = min(wanted, self._cap)
        if self._window is not None:
            room = self._window - ceil(size * self._tokens_per_byte) - RESERVE
            wanted = min(wanted, max(room, refusal_rules().smallest_limit))
        return wanted

    def learn(self, message: str, sent: dict[str, Any], size: int) -> None:
        """Take from the text of a refusal what it says about the body that was sent."""
        lowered = message.lower()
        if self._learn_window(lowered, size) or self._learn_cap(lowered, sent):
            return
        if not names_any(refusal_rules().unsupported, lowered):
            return
        for name in LIMITS:
            if name in sent and self._limit_name is None and re.search(rf"\b{name}\b", lowered):
                self._limit_name = next(each for each in LIMITS if each != name)
                return
        for name in (each for each in PLACES if each in lowered and _has(sent, PLACES[each])):
            self._learn_name(name, sent, lowered)
            return

    def _learn_name(self, name: str, sent: dict[str, Any], message: str) -> None:
        if name in EFFORTS and names_any(refusal_rules().unsupported_value, message):
            return
        if PLACES[name] == ("response_format",) and sent["response_format"] != JSON_OBJECT:
            self._json_object = True
        else:
            self._dropped.add(name)

    def _learn_window(self, message: str, size: int) -> bool:
        """Whether a refusal says that question and answer are together longer than the window."""
        window = _WINDOW.search(message)
        if window is None:
            return False
        self._window = int(window[1])
        prompt = _PROMPT.search(message)
        if prompt is not None and size:
            self._tokens_per_byte = max(self._tokens_per_byte, int(prompt[prompt.lastindex or 1]) / size)
        return True

    def _learn_cap(self, message: str, sent: dict[str, Any]) -> bool:
        """Whether a refusal says that a shorter answer may be asked for, and how long a one."""
        limit = next(sent[name] for name in LIMITS if name in sent)
        if not re.search(r"max_(?:completion_|output_)?tokens|maxoutputtokens", message):
            return False
        numbers = [int(each) for each in _NUMBER.findall(message)]
        shorter = [number for number in numbers if refusal_rules().smallest_limit <= number < limit]
        if not shorter:
            return False
        self._cap = max(shorter) - ("exclusive" in message)
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """What is asked otherwise than intended, in words."""
        dropped = [f"without {PLACES[name][-1] if name != 'effort' else name}" for name in sorted(self._dropped)]
        only_json = self._json_object and not self._dropped & {"response_format", "json_schema"}
        form = ["without the schema of answers"] if only_json else []
        cap = [f"for at most {self._cap:,} tokens an answer"] if self._cap is not None else []
        return (*dropped, *form, *cap)


class FailureCount:
    """Equal failures of a model one after the other, and whether it answered at all."""

    def __init__(self) -> None:
        self._answered, self._kind, self._count = False, "", 0

    def success(self) -> None:
        """Note an answer."""
        self._answered, self._kind, self._count = True, "", 0

    def failure(self, why: str, where: str, remedy: str) -> None:
        """Note a question that failed; raises JudgeError where so many equal ones say that others will fail, too."""
        if names_any(refusal_rules().of_one_question, why):
            return
        kind = same_kind(why)
        self._count = self._count + 1 if kind == self._kind else 1
        self._kind = kind
        rules = refusal_rules()
        if self._count >= (rules.after_success if self._answered else rules.without_success):
            what = f"{self._count} questions one after the other failed for the same reason: {why}"
            raise JudgeError(what, where=where, remedy=remedy)


def same_kind(why: str) -> str:
    """A reason without the numbers and ids in it, which differ between equal failures.

    >>> same_kind("HTTP 429: slow down (request req_18Fa2) (3 of 6 attempts)")
    'HTTP …: slow down (request …) (… of … attempts)'
    """
    return _VARYING.sub("…", why)


def _has(body: dict[str, Any], place: tuple[str, ...]) -> bool:
    inner: Any = body
    for key in place:
        if not isinstance(inner, dict) or key not in inner:
            return False
        inner = inner[key]
    return True


def _drop(body: dict[str, Any], place: tuple[str, ...]) -> None:
    """Take a parameter out of a body, and what holds nothing else with it."""
    if not _has(body, place):
        return
    if len(place) == 1:
        del body[place[0]]
        return
    rest = {key: value for key, value in body[place[0]].items() if key != place[1]}
    if rest:
        body[place[0]] = rest
    else:
        del body[place[0]]
