"""The HTTP API: what its document says is what it does; every error says what, where and what to do."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import jsonschema
import msgspec
import pytest

from undersong.models import ToolCall
from undersong.serve.api import OPERATIONS
from undersong.serve.openapi import document
from undersong.serve.settings import ServeSettings
from undersong.stores.review_queue import queue
from undersong.stores.reviewing import kind_and_id
from undersong.stores.sqlite import SQLiteStore

from .conftest import Client, running
from .world import fill

API = "/api/v1"


def addresses(client: Client) -> dict[str, str]:
    """An address for every reading operation."""
    ids = {kind: client.get(f"{API}/{kind}?limit=1").json["items"][0] for kind in ("findings", "leads", "claims")}
    claim = client.get("/leads").text.partition('href="/claims/')[2].partition('"')[0]
    parts = {"findings": ids["findings"]["finding_id"], "leads": ids["leads"]["id"], "claims": claim, "rules": "darvo"}
    queries = {"/conversation": "?id=talk-00001", "/agent": "?id=talk-00001/ada", "/search": "?words=garden"}
    found = {}
    for each in OPERATIONS:
        if each.method == "GET":
            part = each.path.split("/")[1] if each.path else ""
            found[each.path] = API + each.path.replace("{id}", parts.get(part, "")) + queries.get(each.path, "")
    return found


def test_every_answer_is_as_the_document_says(client: Client) -> None:
    described = client.get(f"{API}/openapi.json").json
    for path, address in addresses(client).items():
        answer = client.get(address)
        assert answer.status == 200, (address, answer.text)
        schema = described["paths"][API + path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json, {**schema, "components": described["components"]})


def test_the_document_names_every_operation_once_and_is_the_same_each_time() -> None:
    names = [op["operationId"] for path in document()["paths"].values() for op in path.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS) + 2
    first = json.dumps(document())
    document.cache_clear()
    assert json.dumps(document()) == first


def test_pages_of_a_list_hold_everything_once(client: Client) -> None:
    whole = client.get(f"{API}/findings?limit=1000").json
    names, after = [], ""
    while True:
        part = client.get(f"{API}/findings?limit=3&after={after}").json
        names += [each["finding_id"] for each in part["items"]]
        after = part["next"]
        if after is None:
            break
    assert names == [each["finding_id"] for each in whole["items"]]
    assert (whole["total"], len(set(names))) == (10, 10)


def test_filters_choose_what_they_say(client: Client) -> None:
    high = client.get(f"{API}/findings?levels=high&levels=critical&likely=true").json["items"]
    assert {each["level"] for each in high} <= {"high", "critical"}
    assert all(each["confidence"] >= 0.5 for each in high)
    assert high
    assert client.get(f"{API}/findings?text=nowhereatall").json["total"] == 0


@pytest.mark.parametrize(
    ("path", "status", "names"),
    [
        ("/findings?levles=high", 400, "levels"),
        ("/findings?levels=awful", 400, "levels"),
        ("/findings?after=xyz", 400, "after"),
        ("/findings?limit=0", 400, "limit"),
        ("/findings?limit=1e9", 400, "limit"),
        ("/findings/none", 404, "none"),
        ("/conversation?id=none", 404, "none"),
        ("/conversation", 400, "id"),
        ("/agent?id=none", 404, "none"),
        ("/rules/none", 404, "none"),
        ("/compare?by=colour", 400, "by"),
        ("/reviews/next?kind=moment", 400, "kind"),
        ("/nothing", 404, "/nothing"),
    ],
)
def test_an_error_says_what_where_and_what_to_do(client: Client, path: str, status: int, names: str) -> None:
    answer = client.get(API + path)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json
    assert set(problem) == {"type", "title", "status", "detail", "where", "remedy"}
    assert problem["detail"]
    assert problem["remedy"]
    assert names in problem["detail"] + problem["where"] + problem["remedy"]


def decision(client: Client, verdict: str = "rejected", **more: Any) -> dict[str, Any]:
    drawn = client.get(f"{API}/reviews/next").json
    return {"kind": "finding", "id": drawn["finding"]["finding_id"], "verdict": verdict, **more}


def test_decisions_are_kept_with_how_they_were_drawn_and_the_next_one_is_another(client: Client, store: Path) -> None:
    first = decision(client, reasons=["out of context"], note="<b>she</b> jokes", reviewer="Ida", shown_score=False)
    kept = client.post(f"{API}/reviews", first)
    assert kept.status == 201
    second = decision(client, "confirmed")
    assert second["id"] != first["id"]
    assert client.post(f"{API}/reviews", second).status == 201
    with SQLiteStore(store, read_only=True) as opened:
        reviews = list(opened.reviews())
    assert [(each.id, each.verdict) for each in reviews] == [(first["id"], "rejected"), (second["id"], "confirmed")]
    assert reviews[0].note == "<b>she</b> jokes"
    assert reviews[0].drawn != "chosen"
    assert (reviews[0].pool, reviews[1].pool) == (4, 3)  # findings of confidence .5 or more come first
    assert reviews[0].shown_score is False
    assert len(reviews[0].rows) == len(client.get(f"{API}/findings/{first['id']}").json["finding"]["message_ids"])
    standing = client.get(f"{API}/findings/{first['id']}").json["standing"]
    assert (standing["review"]["reviewer"], standing["stale"]) == ("Ida", False)
    assert client.get(f"{API}/reviews").json["total"] == 2


@pytest.mark.parametrize(
    ("kind", "verdicts"), [("finding", ["rejected", "confirmed"]), ("lead", ["unsure", "rejected"])]
)
def test_a_page_shows_the_verdict_of_each_who_decided(client: Client, kind: str, verdicts: list[str]) -> None:
    one = client.get(f"{API}/{kind}s?limit=1").json["items"][0]
    name = one["finding_id"] if kind == "finding" else one["id"]
    for reviewer, verdict in zip(("Ida", "Bo<b>"), verdicts, strict=True):
        body = {"kind": kind, "id": name, "verdict": verdict, "reviewer": reviewer, "note": f"{reviewer} says so"}
        assert client.post(f"{API}/reviews", body).status == 201
    text = client.get(f"/{kind}s/{name}").text
    assert [f'class="badge {verdict}">{verdict}</span> by' in text for verdict in verdicts] == [True, True]
    assert "by Ida" in text
    assert "by Bo&lt;b&gt;" in text
    assert "Bo<b>" not in text
    assert "disagree" in text


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"kind": "finding"}', b'{"kind":"x","id":"y","verdict":"z"}', b"\xff"])
def test_a_decision_that_is_none_is_refused_with_its_place(client: Client, body: bytes) -> None:
    answer = client.post(f"{API}/reviews", body, Content_Type="application/json")
    assert answer.status == 400
    assert answer.json["where"] == "body"


def test_a_form_of_another_site_is_no_json(client: Client) -> None:
    assert client.post(f"{API}/reviews", b"{}", Content_Type="text/plain").status == 415


def message(number: int, text: str = "You are the kindest person I know.", **more: Any) -> dict[str, Any]:
    return {"id": f"n{number}", "conversation": "new", "author": "kira", "text": text, **more}


def test_messages_go_into_the_monitor_and_are_in_the_store_when_it_answers(client: Client, store: Path) -> None:
    answer = client.post(f"{API}/messages", message(1))
    assert answer.status == 200, answer.text
    (observed,) = answer.json["observations"]
    assert observed["message"]["id"] == "n1"
    assert observed["evaluation"]["state"] == "scored"
    wrong = [message(2), {"id": "n3", "text": "no conversation"}, message(4)]
    several = client.post(f"{API}/messages", wrong).json
    assert [each["message"]["id"] for each in several["observations"]] == ["n2", "n4"]
    assert several["problems"][0]["where"].startswith("message 1")
    with SQLiteStore(store, read_only=True) as opened:
        assert [each.id for each in opened.conversation("new")[0].messages] == ["n1", "n2", "n4"]
    assert client.post(f"{API}/messages", {"text": "x"}).status == 422
    own = {"nr": "n5", "room": "new", "body": "Hello.", "who": "kira"}
    mapped = client.post(f"{API}/messages?map=id=nr,conversation=room,text=body,author=who", own)
    assert mapped.json["observations"][0]["message"]["id"] == "n5"
    refused = client.post(f"{API}/messages?map=txt=body", own)
    assert (refused.status, "no key 'txt'" in refused.text) == (400, True)


def span(number: int, *said: tuple[str, str]) -> dict[str, Any]:
    """A call of a model whose last message is its answer."""
    parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said]
    texts = {"operation.name": "chat", "conversation.id": "traced", "request.model": "m-9"}
    texts |= {"input.messages": json.dumps(parts[:-1]), "output.messages": json.dumps(parts[-1:])}
    attributes = [{"key": f"gen_ai.{key}", "value": {"stringValue": value}} for key, value in texts.items()]
    nanoseconds = str((1_770_000_000 + number) * 10**9)
    one = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "chat", "attributes": attributes,
           "startTimeUnixNano": nanoseconds, "endTimeUnixNano": nanoseconds}  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}


def test_traces_of_calls_become_one_conversation_though_each_repeats_what_was_said(client: Client, store: Path) -> None:
    said = [("user", "Hello"), ("assistant", "Hi"), ("user", "And now?"), ("assistant", "Now this."), ("user", "Ah"),
            ("assistant", "Yes")]  # fmt: skip
    for number, end in enumerate((2, 4, 4)):
        assert client.post("/v1/traces", span(number, *said[:end])).json == {}
    assert client.post("/v1/traces", span(3, *said[2:6])).json == {}  # the history was cut at its beginning
    with SQLiteStore(store, read_only=True) as opened:
        talk = opened.conversation("traced")[0]
    assert [(each.role, each.text) for each in talk.messages] == said
    assert talk.messages[-1].model == "m-9"
    assert client.post("/v1/traces", b"{", Content_Type="application/json").status == 400
    assert client.post("/v1/traces", b"x", Content_Type="text/plain").status == 415


def test_traces_come_as_protobuf_too_as_an_exporter_sends_them_by_default(client: Client, store: Path) -> None:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    request = ParseDict(span(1, ("user", "Hello"), ("assistant", "Hi")), trace_service_pb2.ExportTraceServiceRequest())
    (sent,) = request.resource_spans[0].scope_spans[0].spans
    sent.trace_id, sent.span_id = bytes(15) + b"\x01", bytes(7) + b"\x01"  # bytes, where JSON has hex
    kind = "application/x-protobuf"
    assert client.post("/v1/traces", request.SerializeToString(), Content_Type=kind).status == 200
    with SQLiteStore(store, read_only=True) as opened:
        talk = opened.conversation("traced")[0]
    assert [(each.role, each.text) for each in talk.messages] == [("user", "Hello"), ("assistant", "Hi")]
    broken = client.post("/v1/traces", b"\xff\xff", Content_Type=kind)
    assert broken.status == 400
    assert broken.json["remedy"]


def test_a_server_that_ends_keeps_what_it_answered(store: Path) -> None:
    with running(ServeSettings(store=store)) as client:
        first = decision(client)
        assert client.post(f"{API}/reviews", first).status == 201
    with running(ServeSettings(store=store)) as client:
        assert [each["id"] for each in client.get(f"{API}/reviews").json["items"]] == [first["id"]]


def test_the_draw_of_the_page_is_that_of_the_command_by_conversations(client: Client, store: Path) -> None:
    with SQLiteStore(store, read_only=True) as opened:
        expected = [kind_and_id(place.candidate.item)[1] for pool in ("likely", "unlikely")
                    for place in queue(opened, pool, order="conversation")]  # type: ignore[arg-type]  # fmt: skip
    chosen = expected[1]
    drawn = []
    assert client.post(f"{API}/reviews", {"kind": "finding", "id": chosen, "verdict": "unsure"}).status == 201
    for _ in range(len(expected) - 1):
        drawn.append(decision(client)["id"])
        assert client.post(f"{API}/reviews", decision(client)).status == 201
    assert drawn == [name for name in expected if name != chosen]
    assert client.get(f"{API}/reviews/next").json["finding"] is None
    with SQLiteStore(store, read_only=True) as opened:
        reviews = list(opened.reviews())
        assert [place for pool in ("likely", "unlikely") for place in queue(opened, pool)] == []  # type: ignore[arg-type]
    assert sorted((each.drawn, each.at) for each in reviews if each.id == chosen) == [
        (drawn_by, reviews[0].at) for drawn_by in ("chosen", "conversation")
    ]
    assert "earlier entr" not in client.get("/review/decisions").text  # one decision, and not two
    assert len(client.get("/review/decisions.jsonl").text.splitlines()) == len(expected)


def test_the_decisions_are_a_page_and_files_and_a_decided_finding_shows_how_sure_it_was(client: Client) -> None:
    body = decision(client, reasons=["joke or fiction", "in a play"], note="=1+1 <b>", reviewer="Ida")
    words = "reason=joke+or+fiction&reason=in+a+play&note=%3D1%2B1+%3Cb%3E&reviewer=Ida"
    form = f"kind=finding&id={body['id']}&verdict=confirmed&back=/review&{words}"
    done = client.form("/reviews", form)
    assert done.status == 303
    after = client.get(done.headers["location"]).text
    assert "The program said about " in after
    assert f'href="/review?id={body["id"]}"' in after  # to decide anew
    again = client.get(f"/review?id={body['id']}").text
    assert "hidden until you decide" not in again
    assert 'value="in a play" checked' in again
    assert "=1+1 &lt;b&gt;</textarea>" in again
    page = client.get("/review/decisions").text
    assert "in a play" in page
    assert "=1+1 &lt;b&gt;" in page
    (line,) = client.get("/review/decisions.jsonl").text.splitlines()
    assert json.loads(line)["note"] == "=1+1 <b>"
    table = client.get("/review/decisions.csv").text
    assert body["id"] in table
    assert "'=1+1" in table  # no formula in a spreadsheet
    withdrawn = f"kind=finding&id={body['id']}&verdict=withdrawn&reviewer=Ida&back=/findings/{body['id']}"
    assert client.form("/reviews", withdrawn).status == 303
    assert client.get(f"{API}/reviews/next").json["finding"]["finding_id"] == body["id"]
    assert client.get(f"{API}/reviews/figures").json["reviewed"] == 0
    shown = client.get(f"/findings/{body['id']}").text
    assert [words in shown for words in ("withdrawn</span> by Ida", "1 earlier entry", "in a play")] == [True] * 3
    assert "0 things decided, 1 decision withdrawn" in client.get("/review/decisions").text
    assert client.form("/reviews", withdrawn).status == 400


def test_findings_of_a_conversation_come_in_a_row_and_the_page_says_what_was_decided_beside_it(tmp_path: Path) -> None:
    fill(tmp_path / "c.db", 4, 10, 20)
    with running(ServeSettings(store=tmp_path / "c.db")) as client:
        conversations = []
        for _ in range(20):
            drawn = client.get(f"{API}/reviews/next").json["finding"]
            conversations.append(drawn["conversations"][0])
            if len(conversations) == 2:
                assert "confirmed beside it" in client.get("/review").text
            body = {"kind": "finding", "id": drawn["finding_id"], "verdict": "confirmed", "reviewer": "Ida"}
            assert client.post(f"{API}/reviews", body).status == 201
        figures = " ".join(client.get("/review/figures").text.split())
        assert "Of the 8 findings of confidence .5 or more alone; less likely ones, 12 so far, are under" in figures
    changes = sum(one != other for one, other in pairwise(conversations))
    assert changes == 3


def test_who_is_named_by_a_role_alone_is_spoken_of_with_an_article(client: Client, store: Path) -> None:
    """As in the report: what the assistant wrote to the user."""
    with SQLiteStore(store) as opened:
        finding = next(opened.findings())
        home = finding.conversations[0]
        opened.append((), [msgspec.structs.replace(finding, agent=f"{home}/assistant", target=f"{home}/user")])
    page = client.get(f"/review?id={finding.finding_id}").text
    assert "Is what the assistant wrote to the user consistent with" in page
    assert "decide anew" not in page  # nobody has decided on it


def test_the_page_of_a_finding_says_when_and_shows_what_its_messages_call(client: Client, store: Path) -> None:
    call = ToolCall(name="Bash", input={"command": "rm -r tests"})
    with SQLiteStore(store) as opened:
        talk, scans, thread = opened.conversation("talk-00001")
        first = msgspec.structs.replace(talk.messages[0], text="", tool_calls=(call,))
        opened.put_conversation(msgspec.structs.replace(talk, messages=(first, *talk.messages[1:])), scans, thread)
    (finding,) = client.get(f"{API}/findings?conversation=talk-00001").json["items"]
    page = client.get(f"/findings/{finding['finding_id']}").text
    assert "calls Bash" in page
    assert "rm -r tests" in page
    assert ', <span class="when">2026-01-05 10:00 – 10:27 UTC</span>.' in page
    assert "turn 10</span>" in client.get("/claims").text  # the first turn is 1 on every page


@pytest.mark.parametrize("kind", ["lead", "claim"])
def test_leads_and_claims_are_decided_on_one_after_the_other(client: Client, kind: str) -> None:
    page, decided = client.get(f"/review?from={kind}").text, set[str]()
    while (name := page.partition('name="id" value="')[2].partition('"')[0]) and len(decided) < 20:
        assert name not in decided
        decided.add(name)
        done = client.form("/reviews", f"kind={kind}&id={name}&verdict=confirmed&back=/review&from={kind}")
        page = client.get(done.headers["location"]).text
        assert f"from={kind}&amp;id={name}" in page  # to decide anew
    assert f"No {kind} is left to decide on" in page
    reviews = client.get(f"{API}/reviews?kind={kind}").json["items"]
    assert {each["id"] for each in reviews} == decided != set()
    assert {each["drawn"] for each in reviews} == {{"lead": "chosen", "claim": "random"}[kind]}  # leads have an order


def test_the_findings_of_one_conversation_can_be_decided_on_alone(client: Client) -> None:
    name = client.get(f"{API}/findings?limit=1").json["items"][0]["conversations"][0]
    page = client.get(f"/review?conversation={name}").text
    assert f"1 finding left in {name}" in page
    chosen = page.partition('name="id" value="')[2].partition('"')[0]
    form = f"kind=finding&id={chosen}&verdict=unsure&back=/review&conversation={name}"
    after = client.get(client.form("/reviews", form).headers["location"]).text
    assert f"No finding that begins in {name} is left" in after


@pytest.mark.parametrize("kind", ["lead", "claim"])
def test_the_next_lead_or_claim_is_that_of_the_command(
    client: Client, store: Path, kind: Literal["lead", "claim"]
) -> None:
    with SQLiteStore(store, read_only=True) as opened:
        expected = [kind_and_id(place.candidate.item)[1] for place in queue(opened, kind)]
    assert expected
    for number, name in enumerate(expected):
        drawn = client.get(f"{API}/reviews/next?kind={kind}").json
        assert (drawn["id"], drawn["pool"]) == (name, len(expected) - number)
        assert [each for each in ("finding", "lead", "claim") if drawn[each]] == [kind]
        assert client.post(f"{API}/reviews", {"kind": kind, "id": name, "verdict": "unsure"}).status == 201
    assert client.get(f"{API}/reviews/next?kind={kind}").json["id"] is None


@pytest.mark.parametrize("own", ["", "text=body"])
def test_the_form_of_an_upload_has_the_map_of_the_server(own: str, store: Path) -> None:
    with running(ServeSettings(store=store, map=own)) as client:
        assert f'name="map" value="{own}"' in client.get("/").text
