"""The pages that change something: review, decisions, files that are dropped, and events that go on."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from undersong.formats.field_map import field_map
from undersong.models import Finding, Record, ReviewVerdict, in_force
from undersong.report.escape import own_name
from undersong.report.sureness import share_words
from undersong.serve.decisions import NAME, Decision, decide
from undersong.serve.evidence import evidence_of
from undersong.serve.forms import converted, query_of
from undersong.serve.item_view import item_view
from undersong.serve.live import changes_of, events_response
from undersong.serve.pages import REVIEWER, page, site_of, sure_shown
from undersong.serve.problems import HttpProblem, ProblemError, missing, problem_response
from undersong.serve.queue import Others, next_draw, next_item, undecided
from undersong.serve.rendering import address
from undersong.stores.reviewing import reviewable, standing

REMEMBERED = 30  # findings that a person has decided or skipped, for the way back
PASSED = "undersong_passed"  # the cookie with their ids, the last one at the end; of leads and claims with the kind
CHUNK = 1 << 20
YEAR = 365 * 24 * 3600
COOKIE = 3000  # characters of it: browsers drop one of more than 4,096 bytes with its name
OFF = "~"  # before the id of one that was skipped since the last decision
SHORTCUTS: dict[str, ReviewVerdict] = {  # a verdict with its reason, by one key
    "another pattern": "rejected",
    "right, but some quotes are wrong": "confirmed",
}


class ReviewTrail(NamedTuple):
    """What a person has decided or skipped, the last one at the end, and what of it was skipped since a decision."""

    names: tuple[str, ...]
    skipped: tuple[str, ...]


class ReviewState(Record, frozen=True, kw_only=True):
    """Where a person is: ``id`` asks for one finding, ``was`` was decided last, ``skip`` comes later.

    ``source``: what is asked, findings where it is ""; those that begin in a ``conversation``, where one is named.
    ``show``: how sure the program is has been asked for.
    """

    id: str = ""
    was: str = ""
    outcome: str = ""
    skip: str = ""
    show: bool = False
    conversation: str = ""
    source: Literal["", "lead", "claim"] = msgspec.field(default="", name="from")


def review(request: Request) -> Response:
    """The next finding to decide on, with how sure it is hidden."""
    library = site_of(request).library
    state = query_of(request.query_params, ReviewState)
    if state.source:
        return _review_item(request, state, state.source)
    passed = _passed(request, state)
    draw = next_draw(library, passed.skipped, state.conversation)
    chosen = library.store.finding(state.id) if state.id else (draw.finding if draw else None)
    if state.id and chosen is None:
        raise missing("there is no such finding", state.id)
    last = library.store.finding(state.was) if state.was else None
    reviewed = len({each.id for each in in_force(library.store.reviews("finding"))})
    answer = page(
        request,
        "review.html.j2",
        "/review",
        e=evidence_of(library, chosen) if chosen else None,
        last=decided_words(last) if last else "",
        last_sure=share_words(last.confidence) if last and last.confidence is not None else "",
        pool=draw.left if draw else 0,
        done=reviewed,
        leads=undecided(library, "lead"),
        claims=undecided(library, "claim"),
        shown=state.show or sure_shown(request) or bool(chosen and state.id and standing(library.store, chosen)),
        reveal=_with(state, id=chosen.finding_id if chosen else "", skip="", show=True),
        again=bool(state.id),
        conversation=state.conversation,
        **_ways(state, passed.names, chosen.finding_id if chosen else ""),
    )
    return _remember(answer, state.source, passed) if state.skip else answer


def _review_item(request: Request, state: ReviewState, source: Others) -> Response:
    """The next lead or claim to decide on."""
    library, passed = site_of(request).library, _passed(request, state)
    draw = next_item(library, source, passed.skipped)
    chosen = reviewable(library.store, source, state.id) if state.id else (draw.item if draw else None)
    if state.id and chosen is None:
        raise missing(f"there is no such {source}", state.id)
    assert not isinstance(chosen, Finding)
    shown = item_view(library, chosen) if chosen else None
    last = reviewable(library.store, source, state.was) if state.was else None
    answer = page(
        request, "review_item.html.j2", "/review", i=shown, left=draw.left if draw else 0, source=source,
        last=last.agent.rpartition("/")[2] if last else "", **_ways(state, passed.names, shown.id if shown else ""),
    )  # fmt: skip
    return _remember(answer, state.source, passed) if state.skip else answer


def _ways(state: ReviewState, passed: tuple[str, ...], name: str) -> dict[str, str]:
    """The addresses from something to decide on to the next one, the one before, and the one that was decided last."""
    place = passed.index(name) if name in passed else len(passed)
    return {
        "skip": _with(state, id="", was="", skip=name, show=False) if name else "",
        "before": _with(state, id=passed[place - 1], was="", skip="", show=False) if place else "",
        "undo": _with(state, id=state.was, was="", skip="", show=False) if state.was else "",
    }


def _passed(request: Request, state: ReviewState) -> ReviewTrail:
    stored = [part for part in request.cookies.get(PASSED + state.source, "").split(".") if part]
    names = tuple(unquote(part.removeprefix(OFF)) for part in stored)
    skipped = tuple(unquote(part[1:]) for part in stored if part.startswith(OFF))
    made = ReviewTrail(names, skipped)
    return ReviewTrail(_last(names, state.skip), _last(skipped, state.skip)) if state.skip else made


def _last(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return (*(each for each in names if each != name), name)[-REMEMBERED:]


def _remember(answer: Response, source: str, passed: ReviewTrail) -> Response:
    """The answer with what was passed in a cookie, so that no address grows."""
    marks = [(OFF if name in passed.skipped else "") + quote(name[:80], safe="") for name in passed.names]
    stored = [mark.replace(".", "%2E") for mark in marks]
    while len(".".join(stored)) > COOKIE:
        del stored[0]
    answer.set_cookie(PASSED + source, ".".join(stored), httponly=True,
                      samesite="strict")  # fmt: skip
    return answer


def decided_words(finding: Finding) -> str:
    """A finding in a few words: pattern and agent."""
    return f"{finding.title}, {own_name(finding.agent, finding.conversations[0] if finding.conversations else '')}"


def _with(state: ReviewState, **changed: Any) -> str:
    """The address of a state of the review."""
    now = msgspec.structs.replace(state, **changed)
    return address(
        "/review", **{"from": now.source}, conversation=now.conversation, id=now.id, was=now.was, skip=now.skip,
        show="1" if now.show else "",
    )  # fmt: skip


async def post_review(request: Request) -> Response:
    """Store what was decided in a form, and go on."""
    async with request.form(max_files=0, max_fields=60) as form:
        texts = {name: str(form[name]) for name in form if isinstance(form[name], str) and form[name]}
        reasons = tuple(str(each) for each in form.getlist("reason") if each)
    back, shortcut = texts.pop("back", ""), texts.pop("with", "")
    source = {name: texts.pop(name) for name in ("from", "conversation") if name in texts}
    texts.pop("reason", None)
    if shortcut in SHORTCUTS:
        texts["verdict"], reasons = SHORTCUTS[shortcut], tuple(dict.fromkeys((*reasons, shortcut)))
    decision = converted(texts | {"reasons": reasons}, Decision, "form")
    await run_in_threadpool(decide, site_of(request).library, decision)
    following = converted(source | {"was": decision.id}, ReviewState, "form")
    if back == "/review":
        target = f"{_with(following)}&outcome={decision.verdict}"
    elif back == "/review/decisions":
        target = f"{back}?outcome={decision.verdict}"
    else:
        target = address(f"/{decision.kind}s", decision.id, outcome=decision.verdict)
    answer: Response = RedirectResponse(target, status_code=303)
    if back == "/review":
        names = _passed(request, following).names
        answer = _remember(answer, following.source, ReviewTrail(_last(names, decision.id), ()))
    if decision.verdict != "withdrawn":  # an empty one says that somebody was asked, and gave no name
        name = quote(decision.reviewer[:NAME], safe=" ")
        answer.set_cookie(REVIEWER, name, max_age=YEAR, httponly=True, samesite="strict")
    return answer


async def post_audit(request: Request) -> Response:
    """Take a file and audit it; the answer leads to its progress."""
    audits = site_of(request).audits
    async with request.form(max_files=1, max_fields=5) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise ProblemError(400, "no file came", where="file", remedy="choose a file, or drop one on the page")
        fields = str(form.get("map", site_of(request).library.settings.map))
        field_map(fields)  # a map that is none is refused before anything is kept
        job = audits.new(file.filename, fields)
        try:
            with audits.path_of(job).open("wb") as target:
                while chunk := await file.read(CHUNK):
                    await run_in_threadpool(target.write, chunk)
        except BaseException:
            audits.discard(job)
            raise
    audits.start(job)
    return RedirectResponse(address("/audits", job.id), status_code=303)


def audit(request: Request) -> Response:
    """How far an audit is."""
    site, name = site_of(request), request.path_params["id"]
    job = site.audits.job(name)
    if job is None:
        run = site.library.runs.run(name)  # of an earlier server; says so where there is none
        return RedirectResponse(address("/runs", run.id), status_code=303)
    return page(request, "audit.html.j2", "/", job=job)


async def audit_events(request: Request) -> Response:
    """How far an audit is, as it goes on."""
    job = site_of(request).audits.job(request.path_params["id"])
    if job is None:
        return problem_response(request.scope, HttpProblem(404, "there is no such audit", request.path_params["id"]))

    def look() -> tuple[dict[str, Any], bool]:
        done = job.finished or job.failed
        return {"words": job.words, "percent": job.percent, "done": job.finished, "failed": job.failed}, done

    return events_response(changes_of(look))


async def live_events(request: Request) -> Response:
    """What is new in the store."""
    return events_response(site_of(request).watcher.listen())
