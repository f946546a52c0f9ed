"""The application: routes, the gate before them, and what starts and ends with the server. Read this first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from undersong.errors import UndersongError
from undersong.serve import actions, decision_list, pages
from undersong.serve.api import PREFIX, Intake, answer_json, routes_of
from undersong.serve.audits import Audits
from undersong.serve.library import Library
from undersong.serve.live import Watcher
from undersong.serve.openapi import document
from undersong.serve.pages import Site, warm
from undersong.serve.problems import HttpProblem, ProblemError, problem_of, problem_response
from undersong.serve.security import BodyTooLargeError, Gate, too_large
from undersong.serve.settings import ServeSettings

THREADS = 16  # that answer requests; each has a connection to the store, of which a server gives a hundred or so


def application(settings: ServeSettings) -> Starlette:
    """The application over one store."""
    library = Library(settings)
    site = Site(library, Audits(settings), Watcher(library))
    intake = Intake(library)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.site = site
        current_default_thread_limiter().total_tokens = THREADS
        site.audits.recover()
        warming = asyncio.create_task(run_in_threadpool(warm, library))
        try:
            yield
        finally:
            await warming
            await site.watcher.close()
            await site.audits.close()
            await intake.close()
            library.close()

    return Starlette(
        routes=[*_page_routes(), *_program_routes(library, intake)],
        middleware=[Middleware(Gate, settings=settings)],
        exception_handlers={
            UndersongError: _error,
            ProblemError: _problem,
            HTTPException: _http,
            BodyTooLargeError: _large,
            Exception: _defect,
        },
        lifespan=lifespan,
    )


def _page_routes() -> list[Route]:
    shown = {
        "/": pages.overview, "/findings": pages.findings, "/findings/{id}": pages.finding, "/find": pages.find,
        "/leads": pages.leads, "/leads/{id}": pages.lead, "/claims": pages.claims, "/claims/{id}": pages.claim,
        "/conversations": pages.conversations, "/conversation": pages.conversation, "/message": pages.message,
        "/agents": pages.agents, "/agent": pages.agent, "/compare": pages.compare, "/live": pages.live,
        "/rules": pages.rules, "/rules/{id}": pages.rule, "/runs": pages.runs, "/runs/{id}": pages.run,
        "/runs/{id}/report": pages.report, "/runs/{id}/{name}": pages.report, "/review": actions.review,
        "/review/figures": pages.review_figures, "/review/decisions": decision_list.decisions,
        "/review/decisions.csv": decision_list.decisions_csv, "/review/decisions.jsonl": decision_list.decisions_jsonl,
        "/audits/{id}": actions.audit, "/audits/{id}/events": actions.audit_events, "/live/events": actions.live_events,
        "/static/{hash}/{name}": pages.static,
    }  # fmt: skip
    changing = {"/reviews": actions.post_review, "/audits": actions.post_audit}
    return [
        *(Route(path, endpoint) for path, endpoint in shown.items()),
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in changing.items()),
    ]


def _program_routes(library: Library, intake: Intake) -> list[Route]:
    async def openapi(request: Request) -> Response:  # noqa: ARG001 - every endpoint is called so
        return answer_json(await run_in_threadpool(document))

    return [
        Route(f"{PREFIX}/openapi.json", openapi),
        Route(f"{PREFIX}/messages", intake.messages, methods=["POST"]),
        Route("/v1/traces", intake.traces, methods=["POST"]),
        *routes_of(library),
    ]


async def _error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UndersongError)
    return problem_response(request.scope, problem_of(error))


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return problem_response(request.scope, error.problem)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    remedies = {404: "see the sections above, or /api/v1/openapi.json", 405: "see /api/v1/openapi.json"}
    what = {404: "there is no such page", 405: f"{request.method} is not taken here"}
    problem = HttpProblem(
        error.status_code,
        what.get(error.status_code, error.detail),
        request.url.path,
        remedies.get(error.status_code, "correct the request"),
    )
    return problem_response(request.scope, problem)


async def _large(request: Request, error: Exception) -> Response:
    return problem_response(request.scope, too_large(int(error.args[0])))


async def _defect(request: Request, error: Exception) -> Response:
    what = f"this is a defect ({type(error).__name__}); what was stored is kept"
    remedy = "please report what the server printed"
    return problem_response(request.scope, HttpProblem(500, what, request.url.path, remedy))
