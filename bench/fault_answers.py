"""Answers that have a fault: what the judge server sends where a message holds ``fault=NAME``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from judge_answers import Answer, Request, answered, error_body, reading, tokens

GIANT = 10_000_000


def _error(status: int, message: str = "", kind: str = "some_error", **headers: str) -> Callable[[Request], Answer]:
    body = error_body(message or f"error {status}", kind)
    return lambda _: Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def _said(change: Callable[[dict[str, Any]], object]) -> Callable[[Request], Answer]:
    def behave(request: Request) -> Answer:
        answer = reading(request)
        change(answer)
        return answered(request, json.dumps(answer))

    return behave


def _text(text: str, **how: Any) -> Callable[[Request], Answer]:
    return lambda request: answered(request, text, **how)


def _judges(**how: Any) -> Callable[[Request], Answer]:
    """A judge's answer that comes in an odd way."""
    return lambda request: answered(request, **how)


def _around(before: str, after: str) -> Callable[[Request], Answer]:
    return lambda request: answered(request, before + json.dumps(reading(request)) + after)


def _thinks(tokens_out: int) -> Callable[[Request], Answer]:
    return lambda request: answered(request._replace(thinking=tokens_out))


def _without(request: Request, name: str) -> Answer:
    """An answer whose envelope lacks something."""
    answer = answered(request)
    body = json.loads(answer.body)
    del body[name]
    return answer._replace(body=json.dumps(body).encode())


def _marks_as_fractions(request: Request) -> Answer:
    answer = reading(request)
    answer["traits"] = {trait: None if mark is None else float(mark) for trait, mark in answer["traits"].items()}
    return answered(request, json.dumps(answer))


def _too_long(window: int) -> Callable[[Request], Answer]:
    """The error of a server whose window is too small for question and answer together, as vLLM words it."""

    def behave(request: Request) -> Answer:
        taken = tokens(request.system) + tokens(request.user)
        if taken + request.limit <= window:
            return answered(request)
        parts = f"({taken} in the messages, {request.limit} in the completion)"
        wanted = f"However, you requested {taken + request.limit} tokens {parts}."
        message = f"This model's maximum context length is {window} tokens. {wanted}"
        return Answer(400, error_body(message, "BadRequestError"))

    return behave


def _capped(most: int) -> Callable[[Request], Answer]:
    """The error of a model that gives no answer of this length."""

    def behave(request: Request) -> Answer:
        if request.limit <= most:
            return answered(request)
        what = f"max_tokens: {request.limit} > {most}, which is the maximum allowed number of output tokens for m-3-5"
        return Answer(400, error_body(what, "invalid_request_error"))

    return behave


SPENT = "You exceeded your current quota, please check your plan and billing details."
FAULTS: dict[str, Callable[[Request], Answer]] = {
    "429_after": _error(429, retry_after="0.05"),
    "429": _error(429),
    "500": _error(500),
    "529": _error(529),
    "504": lambda request: Answer(504, error_body("gateway"), tokens=answered(request).tokens),
    "moved": lambda request: Answer(307, b"", {"location": request.target}),
    "401": _error(401),
    "402": _error(402),
    "404": _error(404, "The model `m` does not exist"),
    "400": _error(400),
    "422": lambda _: Answer(422, b'{"detail": [{"msg": "Input should be a valid string", "loc": ["body", "x"]}]}'),
    "quota": _error(429, SPENT, "insufficient_quota"),
    "credit": _error(400, "Your credit balance is too low to access the API.", "invalid_request_error"),
    "filter": _error(400, "The response was filtered by the content management policy.", "content_filter"),
    "flagged": _error(403, "Your input was flagged by moderation."),
    "effort": _error(400, "Unsupported value: 'reasoning_effort' does not support 'low' with this model."),
    "window": _too_long(24_000),
    "narrow": _too_long(4_000),
    "capped": _capped(8_192),
    "cut": _judges(cut=40),
    "cut_late": _judges(cut=200, late=0.1),
    "drip": _judges(drip=0.05),
    "silent": _judges(late=30.0),
    "slow": _judges(late=0.3),
    "truncated": lambda request: answered(request, json.dumps(reading(request))[:90], stop="length"),
    "thinks": _thinks(1_800),
    "thinks_much": _thinks(20_000),
    "thinks_on": _thinks(1_000_000),
    "runs_on": _text("and so on " * 20_000),
    "broken_envelope": lambda request: answered(request)._replace(body=b'{"choices": 3, "content": 4'),
    "half_envelope": lambda request: answered(request)._replace(body=answered(request).body[:120]),
    "no_body": lambda request: Answer(200, b"", tokens=answered(request).tokens),
    "no_choices": lambda _: Answer(200, b'{"choices": [], "content": []}'),
    "error_200": lambda _: Answer(200, error_body("Provider returned error")),
    "error_200_status": lambda _: Answer(200, error_body("Rate limited upstream", code=429)),
    "error_choice": lambda _: Answer(
        200, b'{"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "upstream"}}], "error": {}}'
    ),
    "html": lambda _: Answer(200, b"<html>a login page</html>", {"content-type": "text/html"}),
    "no_usage": lambda request: _without(request, "usage"),
    "prose": _text("I would say this message is fine."),
    "fenced": _around("Here it is:\n```json\n", "\n```\nDoes that help?"),
    "around": _around("My reading of it: ", " That is all."),
    "fractions": _marks_as_fractions,
    "schema": _said(lambda answer: answer.pop("traits")),
    "range": _said(lambda answer: answer["traits"].update(virtue=9)),
    "refusal": _text("", refusal="I cannot help with that."),
    "empty": _text(""),
    "quote": _said(lambda answer: answer["indicators"][0].update(quote="words that nobody wrote")),
    "unknown": _said(lambda answer: answer["indicators"][0].update(id="MAN-NOSUCH")),
    "control": _said(lambda answer: answer.update(control="steered")),
    "no": _said(lambda answer: answer.update(answer="no", quotes=[])),
    "giant": lambda request: answered(request)._replace(body=b'{"x": "' + b"x" * GIANT),
    "other_model": lambda request: answered(request)._replace(
        body=answered(request).body.replace(b'"model": "m"', b'"model": "m-small"')
    ),
    "limit": _judges(
        headers={"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50ms",
                 "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "0.05"},
    ),
}  # fmt: skip
