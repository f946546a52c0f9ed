"""The pages that change something: review, decisions, files that are dropped, and events that go on."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from undersong.formats.field_map import field_map
from undersong.models import Finding, Record, in_force
from undersong.report.escape import own_name
from undersong.report.sureness import share_words
from undersong.serve.decisions import NAME, Decision, decide
from undersong.serve.evidence import evidence_of
from undersong.serve.forms import converted, query_of
from undersong.serve.item_view import item_view
from undersong.serve.live import changes_of, events_response
from undersong.serve.pages import REVIEWER, page, site_of
from undersong.serve.problems import HttpProblem, ProblemError, missing, problem_response
from undersong.serve.queue import Others, next_draw, next_item, undecided
from undersong.serve.rendering import address
from undersong.stores.reviewing import reviewable, standing

SKIPPED = 30  # findings that a person has skipped and is not asked again for a while
CHUNK = 1 << 20
YEAR = 365 * 24 * 3600


class ReviewState(Record, frozen=True, kw_only=True):
    """Where a person is: ``id`` asks for one finding, ``was`` was decided last, ``skip`` comes later.

    ``source``: what is asked, findings where it is ""; those that begin in a ``conversation``, where one is named.
    ``trail`` are the ones before, decided or skipped, the last one at the end.
    ``show``: how sure the program is has been asked for.
    """

    id: str = ""
    was: str = ""
    outcome: str = ""
    skip: tuple[str, ...] = ()
    show: bool = False
    trail: tuple[str, ...] = ()
    conversation: str = ""
    source: Literal["", "lead", "claim"] = msgspec.field(default="", name="from")


def review(request: Request) -> Response:
    """The next finding to decide on, with how sure it is hidden."""
    library = site_of(request).library
    state = query_of(request.query_params, ReviewState)
    if state.source:
        return _review_item(request, state, state.source)
    draw = next_draw(library, state.skip, state.conversation)
    chosen = library.store.finding(state.id) if state.id else (draw.finding if draw else None)
    if state.id and chosen is None:
        raise missing("there is no such finding", state.id)
    skip = (*state.skip, chosen.finding_id)[-SKIPPED:] if chosen else ()
    gone = (*state.trail, chosen.finding_id)[-SKIPPED:] if chosen else ()
    last = library.store.finding(state.was) if state.was else None
    reviewed = len({each.id for each in in_force(library.store.reviews("finding"))})
    return page(
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
        skip=_with(ReviewState(was=state.was, skip=skip, trail=gone, conversation=state.conversation)),
        before=_with(msgspec.structs.replace(state, id=state.trail[-1], trail=state.trail[:-1], was=""))
        if state.trail
        else "",
        undo=_with(msgspec.structs.replace(state, id=state.was, trail=state.trail[:-1], was="")) if state.was else "",
        trail=state.trail,
        shown=state.show or bool(chosen and state.id and standing(library.store, chosen)),
        reveal=_with(state, show=True),
        again=bool(state.id),
        conversation=state.conversation,
    )


def _review_item(request: Request, state: ReviewState, source: Others) -> Response:
    """The next lead or claim to decide on."""
    library = site_of(request).library
    draw = next_item(library, source, state.skip)
    chosen = reviewable(library.store, source, state.id) if state.id else (draw.item if draw else None)
    if state.id and chosen is None:
        raise missing(f"there is no such {source}", state.id)
    assert not isinstance(chosen, Finding)
    shown = item_view(library, chosen) if chosen else None
    own = (shown.id,) if shown else ()
    skip = msgspec.structs.replace(state, id="", skip=(*state.skip, *own)[-SKIPPED:], trail=_trail(state.trail, own))
    before = msgspec.structs.replace(state, id=state.trail[-1], trail=state.trail[:-1]) if state.trail else None
    undo = msgspec.structs.replace(state, id=state.was, trail=state.trail[:-1]) if state.was else None
    last = reviewable(library.store, source, state.was) if state.was else None
    return page(
        request, "review_item.html.j2", "/review", i=shown, left=draw.left if draw else 0, source=source,
        last=last.agent.rpartition("/")[2] if last else "", trail=state.trail,
        skip=_with(skip), before=_with(before) if before else "", undo=_with(undo) if undo else "",
    )  # fmt: skip


def _trail(before: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    return (*before, *own)[-SKIPPED:]


def decided_words(finding: Finding) -> str:
    """A finding in a few words: pattern and agent."""
    return f"{finding.title}, {own_name(finding.agent, finding.conversations[0] if finding.conversations else '')}"


def _with(state: ReviewState, *, show: bool = False) -> str:
    """The address of a state of the review."""
    query = [
        ("from", state.source),
        ("conversation", state.conversation),
        ("id", state.id),
        ("was", state.was),
        ("show", "1" if show else ""),
    ]
    query += [("skip", name) for name in state.skip] + [("trail", name) for name in state.trail]
    return f"/review?{urlencode([pair for pair in query if pair[1]])}".rstrip("?")


async def post_review(request: Request) -> Response:
    """Store what was decided in a form, and go on."""
    async with request.form(max_files=0, max_fields=60) as form:
        texts = {name: str(form[name]) for name in form if isinstance(form[name], str)}
        texts = {
            name: text
            for name, text in texts.items()
            if name not in ("reason", "back", "trail", "from", "conversation") and text
        }
        reasons = tuple(str(each) for each in form.getlist("reason") if each)
        back = str(form.get("back", ""))
        source = {name: str(form[name]) for name in ("from", "conversation") if name in form}
        trail = tuple(str(each)[:80] for each in form.getlist("trail"))[-SKIPPED:]
    decision = converted(texts | {"reasons": reasons}, Decision, "form")
    await run_in_threadpool(decide, site_of(request).library, decision)
    if back == "/review":
        following = converted(
            source | {"was": decision.id, "trail": _trail(trail, (decision.id,))}, ReviewState, "form"
        )
        target = f"{_with(following)}&outcome={decision.verdict}"
    elif back == "/review/decisions":
        target = f"{back}?outcome={decision.verdict}"
    else:
        target = address(f"/{decision.kind}s", decision.id, outcome=decision.verdict)
    answer = RedirectResponse(target, status_code=303)
    if decision.reviewer:
        answer.set_cookie(REVIEWER, decision.reviewer[:NAME].encode("ascii", "ignore").decode(), max_age=YEAR,
                          httponly=True, samesite="strict")  # fmt: skip
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
