"""The pages that show: lists, one finding, transcripts, agents, rules and runs. All of them only read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from undersong.errors import UndersongError
from undersong.models import REASONS, Finding, Lead, LedgerClaim, Record
from undersong.patterns.catalog import FOLDER, all_rules
from undersong.patterns.lead_weights import lead_weights
from undersong.pipeline.review_standing import figures_of
from undersong.report.decision_words import point_items, standing_words
from undersong.report.opening import finding_point
from undersong.report.opening_choice import Point
from undersong.serve.agent_view import agent_page
from undersong.serve.audits import Audits
from undersong.serve.compare import SHOWN, compared
from undersong.serve.evidence import evidence_of
from undersong.serve.forms import converted, number, query_of
from undersong.serve.item_view import item_view
from undersong.serve.library import Library
from undersong.serve.live import Watcher
from undersong.serve.problems import ProblemError, missing
from undersong.serve.queue import next_draw, shown_count, undecided
from undersong.serve.rendering import HERE, address, environment, render, static_files
from undersong.serve.rendering import TYPES as STATIC_TYPES
from undersong.serve.runs import Run
from undersong.serve.security import HEADERS
from undersong.serve.transcripts import transcript_page
from undersong.stores.listing import AgentQuery, ClaimQuery, ConversationQuery, FindingQuery, LeadQuery, SearchQuery
from undersong.stores.reviewing import Reviewable, standing

STALE = 10.0  # seconds for which a list that counts everything may be that of before
ROWS = 40  # entries of a page for people
KIND_TITLES = {"finding": "findings", "lead": "leads", "claim": "claims"}
POOL_TITLES = {"likely": "confidence .5 or more", "unlikely": "other findings", "lead": "leads", "claim": "claims"}
REVIEWER = "undersong_reviewer"  # the cookie with the name that was given last, "" where none was
SURE = "undersong_sure"  # the cookie of who wants to see how sure the program is of what nobody has decided on
SAID = {"confirmed": "Confirmed:", "rejected": "Rejected:", "unsure": "Unsure:", "withdrawn": "Withdrawn:"}


class Site(NamedTuple):
    """What the pages of one server share."""

    library: Library
    audits: Audits
    watcher: Watcher


def warm(library: Library) -> None:
    """Load what the first pages need, so that nobody waits for it: rules, templates, reports, figures."""
    try:
        for name in environment().list_templates(filter_func=lambda name: (HERE / "templates" / name).exists()):
            environment().get_template(name)
        library.rules()
        for run in library.runs.all():
            _ = run.points, run.coverage
        library.cached("agents", lambda: library.store.list_agents(limit=ROWS))
        next_draw(library)
        compared(library, "model")
        compared(library, "agent")
        library.cached("figures", lambda: figures_of(library.store))
    except UndersongError:
        return  # whoever asks for it is told


def site_of(request: Request) -> Site:
    """The site of a request."""
    site: Site = request.app.state.site
    return site


def page(request: Request, template: str, here: str, **values: Any) -> HTMLResponse:
    """A page with what every page needs."""
    library = site_of(request).library
    shared = {
        "writable": library.settings.writable,
        "reasons": REASONS,
        "names": {"reviewer": unquote(request.cookies.get(REVIEWER, ""))[:80], "asked": REVIEWER in request.cookies},
        "said": SAID.get(request.query_params.get("outcome", ""), ""),
        "last": "stored",
    }
    answer = HTMLResponse(render(template, here=here, **(shared | values)))
    if request.query_params.get("sure") == "1":
        answer.set_cookie(SURE, "1", httponly=True, samesite="strict")
    elif request.query_params.get("sure") == "0":
        answer.delete_cookie(SURE)
    return answer


def sure_shown(request: Request) -> bool:
    """Whether this person has asked to see how sure the program is before they decide."""
    chosen = request.query_params.get("sure")
    return chosen == "1" or (chosen != "0" and SURE in request.cookies)


def _until_decided(request: Request, points: Iterable[Point]) -> tuple[Point, ...]:
    """The points; how sure the program is of what waits for a review is left out, as the review leaves it out."""
    if sure_shown(request) or not site_of(request).library.settings.writable:
        return tuple(points)
    return tuple(
        msgspec.structs.replace(point, sure="") if point.kind == "finding" and not point.decided else point
        for point in points
    )


def static(request: Request) -> Response:
    """A file of the pages; its address has its hash."""
    name = request.path_params["name"]
    files = static_files()
    if name not in files:
        raise missing("there is no such file", name)
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(files[name], media_type=STATIC_TYPES[name.rpartition(".")[2]], headers=headers)


def overview(request: Request) -> Response:
    """The first page: what to look at, and a place to drop a file."""
    site = site_of(request)
    library = site.library
    run = next(iter(library.runs.all()), None)
    points = (
        decided_points(library, run)
        if run
        else tuple(
            msgspec.structs.replace(finding_point(each), decided=_decided(library, each))
            for each in library.store.list_findings(limit=5).items
        )
    )
    counts = library.store.counts()
    left = library.store.list_findings(FindingQuery(reviewed=("none",)), None, 1).total
    return page(
        request,
        "overview.html.j2",
        "/",
        store=library.settings.title,
        field_map=library.settings.map,
        counts=counts,
        lists=[
            ("/findings", counts["findings"], "finding"),
            ("/leads", shown_count(library, "lead"), "lead"),
            ("/claims", library.store.list_claims(None, None, 1).total, "claim"),
        ],
        heading=run.title if run else "What to look at" if points else "Welcome",
        points=_until_decided(request, points),
        sure_shown=sure_shown(request) and library.settings.writable,
        coverage=run.coverage if run else None,
        waiting=left,
        jobs=[job for job in site.audits.jobs() if not job.finished or not run or job.id != run.id][:5],
    )  # fmt: skip


def decided_points(library: Library, run: Run) -> tuple[Point, ...]:
    """What to look at first in a run, with what people decided of it since, as the store has it now."""
    return tuple(
        msgspec.structs.replace(
            point, decided=tuple(words for item in point_items(run.case, point) for words in _decided(library, item))
        )
        for point in run.points
    )


def _decided(library: Library, item: Reviewable) -> tuple[str, ...]:
    now = standing(library.store, item)
    return () if now is None else standing_words(now)


class FindingFilter(Record, frozen=True, kw_only=True):
    """The filters of the page with findings, as its form sends them."""

    q: str = ""
    pattern: str = ""
    level: str = ""
    sure: str = ""
    reviewed: str = ""
    sort: str = "confidence"
    agent: str = ""
    conversation: str = ""
    after: str = ""

    def query(self) -> dict[str, Any]:
        """The same as the fields of a FindingQuery."""
        chosen: dict[str, Any] = {"sort": self.sort, "likely": {"likely": True, "less": False}.get(self.sure)}
        chosen |= {"text": self.q or None, "agent": self.agent or None, "conversation": self.conversation or None}
        several = {"patterns": self.pattern, "levels": self.level, "reviewed": self.reviewed}
        return chosen | {name: (value,) for name, value in several.items() if value}


def findings(request: Request) -> Response:
    """Findings and leads of patterns, filtered, sorted, by the words of their messages."""
    library = site_of(request).library
    chosen = query_of(request.query_params, FindingFilter)
    query = converted(chosen.query(), FindingQuery, "query")
    listed = library.store.list_findings(query, chosen.after or None, ROWS)
    return page(
        request,
        "findings.html.j2",
        "/findings",
        page=listed,
        entries=[(each, finding_point(each), standing(library.store, each)) for each in listed.items],
        query=_as_dict(chosen),
        patterns=sorted({(rule.pattern, rule.file.title) for rule in all_rules() if rule.pattern == rule.id}),
    )


def _as_dict(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def finding(request: Request) -> Response:
    """One finding: stages side by side with the innocent reading."""
    library = site_of(request).library
    return page(request, "finding.html.j2", "/findings", e=evidence_of(library, _finding(library, request)))


def _finding(library: Library, request: Request) -> Finding:
    name = request.path_params["id"]
    one = library.store.finding(name)
    if one is None:
        raise missing("there is no such finding", name)
    return one


def find(request: Request) -> Response:
    """From the beginning of a finding's id, as reports print it, to its page."""
    name = request.query_params.get("id", "")
    names = [each for each in site_of(request).library.store.finding_ids() if name and each.startswith(name)]
    if len(names) != 1:
        raise missing(f"{len(names)} findings begin so", name)
    return RedirectResponse(address("/findings", names[0]), status_code=303)


def message(request: Request) -> Response:
    """From a message's id to its place in the transcript."""
    name, conversation = request.query_params.get("id", ""), request.query_params.get("conversation", "")
    messages = site_of(request).library.store.messages(conversation, [name])
    if not messages:
        raise missing("there is no such message in this store", f"{conversation} {name}")
    place = messages[0].position
    return RedirectResponse(f"{address('/conversation', id=conversation, at=place)}#t{place}", status_code=303)


def leads(request: Request) -> Response:
    """Where to look first, and what agents say of their work."""
    library = site_of(request).library
    store, after = library.store, request.query_params.get("after", "")
    listed = store.list_leads(LeadQuery(), after or None, ROWS)
    claims = store.list_claims(ClaimQuery(), None, 8)
    values = {"page": listed, "claims": claims, "query": {"after": after}, "cut": lead_weights().cut}
    values |= {"above": shown_count(library, "lead"), "left": undecided(library, "lead")}
    return page(request, "leads.html.j2", "/leads", **values)


def claims(request: Request) -> Response:
    """Every claim, those that something speaks against first."""
    state, after = request.query_params.get("state", ""), request.query_params.get("after", "")
    query = converted({"states": (state,)} if state else {}, ClaimQuery, "query")
    listed = site_of(request).library.store.list_claims(query, after or None, ROWS)
    return page(request, "claims.html.j2", "/leads", page=listed, query={"state": state, "after": after})


def lead(request: Request) -> Response:
    """One lead with its messages."""
    name = request.path_params["id"]
    return _item(request, site_of(request).library.store.lead(name), "lead", "Leads", "/leads")


def claim(request: Request) -> Response:
    """One claim with what speaks for or against it."""
    name = request.path_params["id"]
    return _item(request, site_of(request).library.store.claim(name), "claim", "Claims", "/claims")


def _item(request: Request, one: Lead | LedgerClaim | None, kind: str, kicker: str, upper: str) -> Response:
    if one is None:
        raise missing(f"there is no such {kind}", request.path_params["id"])
    i = item_view(site_of(request).library, one)
    return page(request, "item.html.j2", "/leads", i=i, kicker=kicker, upper=upper, back=address(f"/{kind}s", i.id))


class ConversationFilter(Record, frozen=True, kw_only=True):
    """The filters of the page with conversations."""

    q: str = ""
    title: str = ""
    agent: str = ""
    after: str = ""


def conversations(request: Request) -> Response:
    """Conversations, or the messages that hold some words."""
    store = site_of(request).library.store
    chosen = query_of(request.query_params, ConversationFilter)
    after = chosen.after or None
    if chosen.q:
        listed: Any = store.search(SearchQuery(words=chosen.q, agent=chosen.agent or None), after, ROWS)
    else:
        query = ConversationQuery(agent=chosen.agent or None, title=chosen.title or None)
        listed = store.list_conversations(query, after, ROWS)
    return page(request, "conversations.html.j2", "/conversations", page=listed, query=_as_dict(chosen))


def conversation(request: Request) -> Response:
    """A stretch of a transcript."""
    at = number(request.query_params, "at", 0, 0, 10**9)
    shown = transcript_page(site_of(request).library, request.query_params.get("id", ""), at)
    return page(request, "conversation.html.j2", "/conversations", p=shown)


def agents(request: Request) -> Response:
    """Agents, those with findings first."""
    name, after = request.query_params.get("name", ""), request.query_params.get("after", "")
    library = site_of(request).library
    if name or after:
        listed = library.store.list_agents(AgentQuery(name=name or None), after or None, ROWS)
    else:  # every agent is counted for it
        listed = library.cached("agents", lambda: library.store.list_agents(limit=ROWS), stale=STALE)
    return page(request, "agents.html.j2", "/agents", page=listed, query={"name": name, "after": after})


def agent(request: Request) -> Response:
    """One agent over time."""
    name = request.query_params.get("name", "")
    shown = agent_page(site_of(request).library, name)
    if shown is None:
        raise missing("there is no such agent", name)
    entries = [(each, finding_point(each)) for each in shown.findings[:ROWS]]
    return page(request, "agent.html.j2", "/agents", a=shown, entries=entries)


def compare(request: Request) -> Response:
    """Models or authors side by side."""
    by = request.query_params.get("by", "model")
    if by not in ("model", "agent"):
        raise ProblemError(400, f"'{by[:40]}' cannot be compared", where="by", remedy="compare by model or by agent")
    groups = compared(site_of(request).library, by)  # type: ignore[arg-type]
    return page(request, "compare.html.j2", "/compare", by=by, groups=groups[:SHOWN], more=max(0, len(groups) - SHOWN))


def live(request: Request) -> Response:
    """What other programs write into the store, as it comes."""
    store = site_of(request).library.store
    latest = store.latest_messages(max(0, store.latest_number() - 12), 12)
    return page(request, "live.html.j2", "/live", counts=store.counts(), messages=latest[::-1])


def review_figures(request: Request) -> Response:
    """What the decisions say so far."""
    library = site_of(request).library
    shown = library.cached("figures", lambda: figures_of(library.store))
    titles = {rule.pattern: rule.file.title for rule in all_rules() if rule.pattern == rule.id}
    return page(request, "figures.html.j2", "/review", f=shown, titles=POOL_TITLES | KIND_TITLES | titles)


def rules(request: Request) -> Response:
    """What is looked for."""
    library = site_of(request).library
    return page(request, "rules.html.j2", "/rules", rules=all_rules(), findings=_by_pattern(library))


def rule(request: Request) -> Response:
    """One rule with its cases."""
    library, name = site_of(request).library, request.path_params["id"]
    one = next((each for each in all_rules() if each.id == name), None)
    if one is None:
        raise missing("there is no such rule", name)
    text = (FOLDER / f"{one.id}.yaml").read_text(encoding="utf-8")
    return page(request, "rule.html.j2", "/rules", rule=one, text=text, number=_by_pattern(library)[one.pattern])


def _by_pattern(library: Library) -> Counter[str]:
    return library.cached("by pattern", lambda: Counter(library.store.pattern_counts()), stale=STALE)


def runs(request: Request) -> Response:
    """The reports beside the store."""
    library = site_of(request).library
    facts = library.store.facts() | {name: f"{count:,}" for name, count in library.store.counts().items()}
    return page(request, "runs.html.j2", "/runs", runs=library.runs.all(), facts=facts)


def run(request: Request) -> Response:
    """One run: what to look at, what was not looked at, and its facts."""
    library = site_of(request).library
    one = library.runs.run(request.path_params["id"])
    return page(request, "run.html.j2", "/runs", run=one, points=decided_points(library, one))


PARTS = {"html": "text/html; charset=utf-8", "md": "text/plain; charset=utf-8", "svg": "image/svg+xml",
         "json": "application/json", "jsonl": "application/x-ndjson"}  # fmt: skip


REPORT_POLICY = (  # a report's own policy allows its style and its script by hash; the sandbox keeps it from our pages
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-scripts allow-top-navigation-by-user-activation"
)


def report(request: Request) -> Response:
    """A file of a finished report; its pages bring their own policy, which allows their own style and script alone."""
    one = site_of(request).library.runs.run(request.path_params["id"])
    name = request.path_params.get("name") or "report.html"
    path = one.folder / name
    if path.name != name or path.suffix[1:] not in PARTS or not path.is_file() or path.is_symlink():
        raise missing("there is no such file in the report", name)
    headers = {
        "Content-Security-Policy": REPORT_POLICY if path.suffix == ".html" else HEADERS["Content-Security-Policy"]
    }
    return FileResponse(path, media_type=PARTS[path.suffix[1:]], headers=headers)
