"""Errors as answers: problem details (RFC 9457) for programs, a page for people; always what, where and remedy."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from undersong.errors import InputError, JudgeError, StoreError, UndersongError, UsageError
from undersong.models import Record
from undersong.serve.rendering import render

MEDIA_TYPE = "application/problem+json"
STATUS: tuple[tuple[type[UndersongError], int], ...] = (
    (InputError, 422), (UsageError, 400), (StoreError, 503), (JudgeError, 502)
)  # fmt: skip
PROGRAMS = ("/api/", "/v1/")  # addresses for programs


class HttpProblem(NamedTuple):
    """What is wrong, with the status of HTTP that says it."""

    status: int
    what: str
    where: str = ""
    remedy: str = ""


class ProblemDetails(Record, frozen=True, kw_only=True):
    """HttpProblem details as RFC 9457 has them, with ``where`` and ``remedy`` beside."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    where: str = ""
    remedy: str = ""


class ProblemError(Exception):
    """Ends a request with a problem."""

    def __init__(self, status: int, what: str, *, where: str = "", remedy: str = "") -> None:
        self.problem = HttpProblem(status, what, where, remedy)
        super().__init__(what)


def missing(what: str, where: str) -> ProblemError:
    """The error of an address whose finding, agent or file is not there."""
    return ProblemError(404, what, where=where, remedy="it may have been forgotten or replaced; go back to the list")


def problem_of(error: UndersongError) -> HttpProblem:
    """An error of the program as a problem."""
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 500)
    return HttpProblem(status, error.what, error.where, error.remedy)


def details_of(problem: HttpProblem) -> ProblemDetails:
    """The problem as a record."""
    title = HTTPStatus(problem.status).phrase
    return ProblemDetails(
        title=title, status=problem.status, detail=problem.what, where=problem.where, remedy=problem.remedy
    )


def problem_response(scope: Scope, problem: HttpProblem) -> Response:
    """The answer: JSON for programs, else a page that needs nothing but itself."""
    details = details_of(problem)
    if scope["path"].startswith(PROGRAMS):
        return Response(msgspec.json.encode(details), status_code=problem.status, media_type=MEDIA_TYPE)
    return HTMLResponse(render("problem.html.j2", problem=details), status_code=problem.status)


def problem_for(request: Request, problem: HttpProblem) -> Response:
    """The answer to a request."""
    return problem_response(request.scope, problem)
