"""The HTTP API: one table of operations, from which routes and the OpenAPI document are made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from undersong import __version__
from undersong.errors import UndersongError
from undersong.formats.field_map import field_map, renamed
from undersong.models import (
    Conversation,
    Finding,
    Lead,
    LedgerClaim,
    Level,
    Message,
    Record,
    Review,
    ReviewKind,
    ReviewStanding,
)
from undersong.monitor.monitor import Monitor
from undersong.monitor.state import Observation
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.rulefile import RuleFile
from undersong.pipeline.review_standing import figures_of
from undersong.report.review_figures import ReviewFigures
from undersong.serve.compare import compared
from undersong.serve.decisions import Decision, decide
from undersong.serve.forms import query_of
from undersong.serve.library import Library
from undersong.serve.otlp import as_json, conversations_of, new_messages
from undersong.serve.problems import ProblemDetails, ProblemError, details_of, missing, problem_of
from undersong.serve.queue import next_draw, next_item
from undersong.stores.listing import (
    AgentOverview,
    AgentQuery,
    ClaimQuery,
    ConversationEntry,
    ConversationQuery,
    FindingQuery,
    LeadQuery,
    Page,
    SearchHit,
    SearchQuery,
)
from undersong.stores.reviewing import kind_and_id, reviewable, standing
from undersong.stores.sql.browsing import GroupBy

LIMIT = 50  # entries of a page, where a request names no other number
PAGING = ("after", "limit")
TURNS = 200  # messages of a conversation in one answer
PREFIX = "/api/v1"


class Nothing(Record, frozen=True, kw_only=True):
    """No parameters."""


class Named(Record, frozen=True, kw_only=True):
    """The id or name of one thing."""

    id: str


class TranscriptQuery(Record, frozen=True, kw_only=True):
    """Which conversation, and the position of the first message."""

    id: str
    position: int = 0


class TranscriptAnswer(Record, frozen=True, kw_only=True):
    """A conversation's messages from a position on; ``next`` is the position of the following ones, None at the end."""

    conversation: Conversation
    messages: tuple[Message, ...]
    next: int | None


class ReviewQuery(Record, frozen=True, kw_only=True):
    """Which reviews: of a kind, of one thing by its id."""

    kind: ReviewKind | None = None
    of: str | None = None


class ReviewedItem(Record, frozen=True, kw_only=True):
    """A finding, lead or claim with the latest decision on it, None where it has to be decided."""

    finding: Finding | None = None
    lead: Lead | None = None
    claim: LedgerClaim | None = None
    standing: ReviewStanding | None = None


class NextQuery(Record, frozen=True, kw_only=True):
    """What is to be decided on."""

    kind: ReviewKind = "finding"


class DrawnItem(Record, frozen=True, kw_only=True):
    """What to review next, None where nothing is left; how probable it was that the draw took it, and from how many.

    ``id`` is what a decision calls it. Leads come in their order and are not drawn; of claims the probability is stored
    with the decision.
    """

    id: str | None = None
    finding: Finding | None = None
    lead: Lead | None = None
    claim: LedgerClaim | None = None
    propensity: float | None = None
    pool: int = 0


class CompareQuery(Record, frozen=True, kw_only=True):
    """Side by side: models or agents."""

    by: GroupBy = "model"


class GroupFigures(Record, frozen=True, kw_only=True):
    """One model or agent; ``low`` and ``high`` bound the ``harmful`` share of the ``scored`` messages with 95 %."""

    name: str
    messages: int
    scored: int
    ranked: int
    harmful: int
    low: float | None
    high: float | None
    findings: int
    likely: int
    claims: dict[str, int]


class RuleEntry(Record, frozen=True, kw_only=True):
    """A rule in a list."""

    id: str
    title: str
    level: Level
    enabled: bool
    description: str
    hash: str


class RunEntry(Record, frozen=True, kw_only=True):
    """A finished report beside the store."""

    id: str
    name: str
    messages: int
    conversations: int
    judge: str
    parameters: dict[str, Any]


class Observed(Record, frozen=True, kw_only=True):
    """What became of the messages of a request, in their order; a problem names the number of its message from 0."""

    observations: tuple[Observation, ...]
    problems: tuple[ProblemDetails, ...] = ()


class StoreFacts(Record, frozen=True, kw_only=True):
    """What is served."""

    version: str
    store: dict[str, str]
    counts: dict[str, int]
    writable: bool


class ApiCall(NamedTuple):
    """What an operation is given: the library, the typed query, the parts of the path, the typed body."""

    library: Library
    query: Any
    path: Mapping[str, str]
    body: Any
    after: str | None
    limit: int


class Operation(NamedTuple):
    """One operation of the API; ``entry`` is the type of its answer, of a page's entries where it is ``paged``."""

    method: str
    path: str
    name: str
    summary: str
    entry: Any
    call: Callable[[ApiCall], Any]
    query: type[Record] = Nothing
    body: Any = None
    paged: bool = False
    status: int = 200


def _one(kind: ReviewKind) -> Callable[[ApiCall], ReviewedItem]:
    def call(asked: ApiCall) -> ReviewedItem:
        store, name = asked.library.store, asked.path["id"]
        item = reviewable(store, kind, name)
        if item is None:
            raise missing(f"there is no such {kind}", name)
        decided = standing(store, item)
        if isinstance(item, Finding):
            return ReviewedItem(finding=item, standing=decided)
        if isinstance(item, Lead):
            return ReviewedItem(lead=item, standing=decided)
        return ReviewedItem(claim=item, standing=decided)

    return call


def _conversation(asked: ApiCall) -> TranscriptAnswer:
    store, query = asked.library.store, asked.query
    head = store.conversation_head(query.id)
    if head is None:
        raise missing("there is no such conversation", query.id)
    messages = store.transcript(query.id, query.position, query.position + TURNS - 1)
    length = store.length(query.id) or 0
    after = query.position + TURNS
    return TranscriptAnswer(conversation=head, messages=messages, next=after if after < length else None)


def _agent(asked: ApiCall) -> AgentOverview:
    listed = asked.library.store.list_agents(AgentQuery(name=asked.query.id, sort="name"), None, 1_000).items
    one = next((each for each in listed if each.agent == asked.query.id), None)
    if one is None:
        raise missing("there is no such agent", asked.query.id)
    return one


def _reviews(asked: ApiCall) -> Page[Review]:
    every = list(asked.library.store.reviews(asked.query.kind, asked.query.of))
    keys = [review.key for review in every]
    if asked.after is not None and asked.after not in keys:
        raise ProblemError(400, "no page ended there", where="after", remedy="begin again with the first page")
    start = keys.index(asked.after) + 1 if asked.after is not None else 0
    items = tuple(every[start : start + asked.limit])
    return Page(items, items[-1].key if start + asked.limit < len(every) else None, len(every))


def _next_review(asked: ApiCall) -> DrawnItem:
    kind: ReviewKind = asked.query.kind
    if kind != "finding":
        beside = next_item(asked.library, kind)
        if beside is None:
            return DrawnItem()
        (_, name), item = kind_and_id(beside.item), beside.item
        if isinstance(item, Lead):
            return DrawnItem(id=name, lead=item, pool=beside.left)
        return DrawnItem(id=name, claim=item, pool=beside.left)
    draw = next_draw(asked.library)
    if draw is None:
        return DrawnItem()
    finding, drawn = draw.finding, draw.drawn
    return DrawnItem(id=finding.finding_id, finding=finding, propensity=drawn.propensity, pool=drawn.pool or 0)


def _compare(asked: ApiCall) -> tuple[GroupFigures, ...]:
    names = GroupFigures.__struct_fields__
    groups = compared(asked.library, asked.query.by)
    return tuple(GroupFigures(**{name: getattr(group, name) for name in names}) for group in groups)


def _rules(asked: ApiCall) -> tuple[RuleEntry, ...]:  # noqa: ARG001 - every operation is called so
    return tuple(
        RuleEntry(id=rule.id, title=rule.file.title, level=rule.file.level, enabled=rule.file.enabled,
                  description=" ".join(rule.file.description.split()), hash=rule.hash)
        for rule in all_rules()
    )  # fmt: skip


def _rule(asked: ApiCall) -> RuleFile:
    one = next((rule for rule in all_rules() if rule.id == asked.path["id"]), None)
    if one is None:
        raise missing("there is no such rule", asked.path["id"])
    return one.file


def _runs(asked: ApiCall) -> tuple[RunEntry, ...]:
    return tuple(
        RunEntry(id=run.id, name=run.name, messages=run.case.messages, conversations=run.case.conversations,
                 judge=str(run.case.parameters.get("judge", "")), parameters=run.case.parameters)
        for run in asked.library.runs.all()
    )  # fmt: skip


def _facts(asked: ApiCall) -> StoreFacts:
    store = asked.library.store
    writable = asked.library.settings.writable
    return StoreFacts(version=__version__, store=store.facts(), counts=store.counts(), writable=writable)


OPERATIONS = (
    Operation("GET", "", "facts", "What is served.", StoreFacts, _facts),
    Operation("GET", "/findings", "listFindings", "Findings, filtered and sorted, by the page.", Finding,
              lambda a: a.library.store.list_findings(a.query, a.after, a.limit), FindingQuery, paged=True),
    Operation("GET", "/findings/{id}", "finding", "One finding.", ReviewedItem, _one("finding")),
    Operation("GET", "/leads", "listLeads", "Leads, undecided ones and the highest score first, by the page.", Lead,
              lambda a: a.library.store.list_leads(a.query, a.after, a.limit), LeadQuery, paged=True),
    Operation("GET", "/leads/{id}", "lead", "One lead.", ReviewedItem, _one("lead")),
    Operation("GET", "/claims", "listClaims", "Claims of agents about their work, by the page.", LedgerClaim,
              lambda a: a.library.store.list_claims(a.query, a.after, a.limit), ClaimQuery, paged=True),
    Operation("GET", "/claims/{id}", "claim", "One claim.", ReviewedItem, _one("claim")),
    Operation("GET", "/conversations", "listConversations", "Conversations, by the page.", ConversationEntry,
              lambda a: a.library.store.list_conversations(a.query, a.after, a.limit), ConversationQuery, paged=True),
    Operation("GET", "/conversation", "conversation", "A conversation's messages from a position on.", TranscriptAnswer,
              _conversation, TranscriptQuery),
    Operation("GET", "/agents", "listAgents", "Agents, by the page.", AgentOverview,
              lambda a: a.library.store.list_agents(a.query, a.after, a.limit), AgentQuery, paged=True),
    Operation("GET", "/agent", "agent", "One agent.", AgentOverview, _agent, Named),
    Operation("GET", "/search", "search", "Messages by their words, by the page.", SearchHit,
              lambda a: a.library.store.search(a.query, a.after, a.limit), SearchQuery, paged=True),
    Operation("GET", "/reviews", "listReviews", "Decisions in the order of time, by the page.", Review, _reviews,
              ReviewQuery, paged=True),
    Operation("POST", "/reviews", "decide", "Decide on a finding, a lead or a claim.", Review,
              lambda a: decide(a.library, a.body), body=Decision, status=201),
    Operation("GET", "/reviews/next", "nextReview", "What to decide on next.", DrawnItem, _next_review, NextQuery),
    Operation("GET", "/reviews/figures", "reviewFigures", "How many were right, by rule, level and confidence.",
              ReviewFigures, lambda a: a.library.cached("figures", lambda: figures_of(a.library.store))),
    Operation("GET", "/compare", "compare", "Models or agents side by side.", tuple[GroupFigures, ...], _compare,
              CompareQuery),
    Operation("GET", "/rules", "listRules", "What is looked for.", tuple[RuleEntry, ...], _rules),
    Operation("GET", "/rules/{id}", "rule", "One rule as it is written, with its cases.", RuleFile, _rule),
    Operation("GET", "/runs", "listRuns", "Finished reports beside the store.", tuple[RunEntry, ...], _runs),
)  # fmt: skip


class PagedAnswer(Record, frozen=True, kw_only=True):
    """A page of a list: ``next`` is the ``after`` of the following one, None at the end; ``total`` counts all."""

    items: Any
    next: str | None
    total: int


def answer_json(value: Any, status: int = 200) -> Response:
    """A typed value as JSON."""
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def routes_of(library: Library) -> list[Route]:
    """The routes of the table."""
    return [Route(PREFIX + each.path, _endpoint(each, library), methods=[each.method]) for each in OPERATIONS]


def _endpoint(operation: Operation, library: Library) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        also = PAGING if operation.paged else ()
        query = query_of(request.query_params, operation.query, also)
        limit = request.query_params.get("limit", str(LIMIT)) if operation.paged else str(LIMIT)
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:6]) <= 1_000 and len(limit) <= 6):
            raise ProblemError(400, f"'{limit[:40]}' entries", where="limit", remedy="ask for 1 to 1,000")
        body = None if operation.body is None else await typed_body(request, operation.body)
        after = request.query_params.get("after") or None if operation.paged else None
        call = ApiCall(library, query, request.path_params, body, after, int(limit))
        value = await run_in_threadpool(operation.call, call)
        if operation.paged:
            value = PagedAnswer(items=value.items, next=value.next, total=value.total)
        return answer_json(value, operation.status)

    return endpoint


async def typed_body(request: Request, kind: Any) -> Any:
    """The JSON body as a typed value; raises ProblemError where it is another thing."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        remedy = "send Content-Type: application/json"
        raise ProblemError(415, f"'{media_type[:60]}' is no JSON", where="Content-Type", remedy=remedy)
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(400, str(error), where="body", remedy=f"see {PREFIX}/openapi.json for its form") from error


class Intake:
    """Messages that come over HTTP, into one monitor that is opened with the first of them."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._monitor: Monitor | None = None
        self._traces = asyncio.Lock()

    @property
    def monitor(self) -> Monitor:
        """The monitor on the store."""
        if self._monitor is None:
            self._monitor = Monitor(self._library.settings.store, self._library.settings.judge)
        return self._monitor

    async def messages(self, request: Request) -> Response:
        """POST /api/v1/messages: one message or a list of them, with the keys of our JSON Lines or of ``?map=``."""
        body = await typed_body(request, dict[str, Any] | list[dict[str, Any]])
        fields = field_map(request.query_params.get("map") or self._library.settings.map)
        observed = await self._observe(renamed(body if isinstance(body, list) else [body], fields))
        refused = bool(observed.problems) and not observed.observations
        if refused and isinstance(body, dict):
            first = observed.problems[0]
            raise ProblemError(first.status, first.detail, where=first.where, remedy=first.remedy)
        return answer_json(observed, 422 if refused else 200)

    async def traces(self, request: Request) -> Response:
        """POST /v1/traces: OTLP over HTTP, as an exporter of OpenTelemetry sends it."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        traces = as_json(await request.body(), media_type)
        async with self._traces:  # two calls of one conversation at once would both append
            conversations, problems = await run_in_threadpool(conversations_of, traces)
            if problems and not conversations:
                raise ProblemError(400, problems[0].what, where=problems[0].where, remedy=problems[0].remedy)
            messages = [m for each in conversations for m in await run_in_threadpool(self._new, each)]
            observed = await self._observe(messages)
        rejected = [problem.what for problem in problems] + [problem.detail for problem in observed.problems]
        partial = {"rejectedSpans": str(len(rejected)), "errorMessage": "; ".join(rejected)[:1000]}
        return answer_json({"partialSuccess": partial} if rejected else {})

    def _new(self, conversation: Conversation) -> list[Message]:
        return list(new_messages(self._library, conversation))

    async def _observe(self, messages: list[Any]) -> Observed:
        waiting = [self.monitor.observe(message) for message in messages]
        done = await asyncio.gather(*waiting, return_exceptions=True)
        problems = []
        for number, result in enumerate(done):
            if isinstance(result, UndersongError):
                problem = problem_of(result)
                problems.append(details_of(problem._replace(where=f"message {number} {problem.where}".strip())))
            elif isinstance(result, BaseException):
                raise result
        return Observed(
            observations=tuple(each for each in done if isinstance(each, Observation)), problems=tuple(problems)
        )

    async def close(self) -> None:
        """Wait for what was given, and release the store."""
        if self._monitor is not None:
            await self._monitor.close()
