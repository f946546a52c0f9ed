"""Findings as OpenTelemetry events: taken by the collector's own receiver, on the spans that the input had."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import undersong as library
from tests.conftest import Undersong
from undersong.bridges.otlp_sender import headers_of, logs_url, send
from undersong.errors import StoreError, UsageError
from undersong.models import Case, Message, SourceRef
from undersong.report.render.otlp import EVENT, RUN_EVENT, SCHEMA_URL, lines, requests, span_of

from .conftest import Collector

DEMO = Path(__file__).parents[2] / "demo"
TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    """The attributes as plain values."""
    return {item["key"]: plain(item["value"]) for item in record["attributes"]}


def plain(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [plain(item) for item in inner["values"]]
    return int(inner) if kind == "intValue" else inner


def as_trace(session: Path) -> dict[str, Any]:
    """A session of the demo as the trace of its model calls: each repeats what came before it."""
    history: list[dict[str, Any]] = []
    spans = []
    for number, turn in enumerate(json.loads(session.read_text(encoding="utf-8"))["turns"], 1):
        parts = [{"type": "text", "content": turn["text"]}] if turn.get("text") else []
        parts += [{"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": call["input"]}
                  for call in turn.get("tool_calls", ())]  # fmt: skip
        parts += [{"type": "tool_call_response", "id": result["call_id"], "response": result["text"]}
                  for result in turn.get("tool_results", ())]  # fmt: skip
        message = {"role": turn["role"], "parts": parts}
        if turn["role"] == "assistant":
            told = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "csv-import",
                    "gen_ai.input.messages": json.dumps(history),
                    "gen_ai.output.messages": json.dumps([message])}  # fmt: skip
            spans.append({"traceId": TRACE, "spanId": f"{number:016x}", "name": "chat",
                          "startTimeUnixNano": str(10**18 + number * 10**9),
                          "endTimeUnixNano": str(10**18 + number * 10**9 + 5 * 10**8),
                          "attributes": [{"key": key, "value": {"stringValue": value}}
                                         for key, value in told.items()]})  # fmt: skip
        history.append(message)
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": spans}]}]}


@pytest.mark.servers
def test_the_collector_takes_the_events_of_the_demo(undersong: Undersong, tmp_path: Path, collector: Collector) -> None:
    shutil.copytree(DEMO, tmp_path / "demo")
    judge = ("--read", "sequences", "--judge", "replay:demo/readings.replay")
    ran = undersong("audit", "demo/conversations", *judge, "--otlp", collector.url, "--format", "otlp")
    assert ran.code == 0, ran.err
    assert "events sent" in ran.out
    run, *events = collector.records(3)
    assert (run["eventName"], run["scope"]["schemaUrl"]) == (RUN_EVENT, SCHEMA_URL)
    facts = attributes(run)
    assert (facts["undersong.conversations"], facts["undersong.messages"]) == (3, 37)
    assert facts["undersong.not_looked_at"].startswith("Not looked at:")
    (finding,) = [json.loads(line) for line in Path("undersong-report/findings.jsonl").read_text().splitlines()]
    (event,) = [each for each in events if attributes(each)["gen_ai.evaluation.name"] == "love_bombing"]
    told = attributes(event)
    assert event["eventName"] == EVENT
    assert told["gen_ai.evaluation.score.value"] == finding["confidence"]
    assert told["gen_ai.evaluation.score.label"] == "finding"
    assert "consistent with" in told["gen_ai.evaluation.explanation"]
    assert told["undersong.finding.id"] == finding["finding_id"]
    assert told["undersong.message.ids"] == finding["message_ids"]
    assert told["undersong.message.id"] == finding["message_ids"][-1]
    assert (told["gen_ai.conversation.id"], told["undersong.span.origin"]) == ("flat_share", "made")
    assert (len(event["traceId"]), len(event["spanId"])) == (32, 16)
    written = [json.loads(line) for line in Path("undersong-report/events.otlp.jsonl").read_text().splitlines()]
    ours = [record for body in written for scope in body["resourceLogs"][0]["scopeLogs"]
            for record in scope["logRecords"]]  # fmt: skip
    assert [attributes(each) for each in ours] == [attributes(each) for each in (run, *events)]
    assert undersong("verify", "undersong-report", "demo/conversations").code == 0


@pytest.mark.servers
def test_an_event_is_on_the_span_that_the_input_had(undersong: Undersong, collector: Collector) -> None:
    Path("trace.json").write_text(json.dumps(as_trace(DEMO / "conversations" / "csv_import.json")), encoding="utf-8")
    ran = undersong("audit", "trace.json", "--otlp", collector.url)
    assert ran.code == 0, ran.err
    _, *events = collector.records(2)
    claims = [json.loads(line) for line in Path("undersong-report/claims.jsonl").read_text().splitlines()]
    false = [claim for claim in claims if claim["state"] == "contradicted"]
    assert false
    messages = {message["id"]: message for line in Path("undersong-report/conversations.jsonl").read_text().splitlines()
                for message in json.loads(line)["messages"]}  # fmt: skip
    spans = {attributes(each)["undersong.message.id"]: each for each in events}
    for claim in false:
        event = spans[claim["message_id"]]
        assert attributes(event)["undersong.span.origin"] == "input"
        assert f"{event['traceId']}/{event['spanId']}" == messages[claim["message_id"]]["source_ref"]["span"]
        assert event["traceId"] == TRACE
        assert int(event["timeUnixNano"]) > 10**18
    assert undersong("verify", "undersong-report", "trace.json").code == 0


@pytest.mark.parametrize(
    ("span", "origin"),
    [
        (f"{TRACE}/00f067aa0ba902b7", "input"),
        ("t-9/s-1", "made"),
        (f"{'0' * 32}/00f067aa0ba902b7", "made"),
        (f"{TRACE}/", "made"),
        (f"{TRACE.upper()}/00F067AA0BA902B7", "made"),
    ],
)
def test_ids_that_are_none_are_made_and_said(span: str, origin: str) -> None:
    ref = SourceRef(file="t.json", span=span)
    message = Message(id="m", conversation="c", position=0, author="a", role="user", text="", source_ref=ref)
    trace_id, span_id, whose = span_of(message, "c", "m")
    assert whose == origin
    assert (f"{trace_id}/{span_id}" == span) is (origin == "input")
    assert span_of(None, "c", "m") == span_of(None, "c", "m") != span_of(None, "c", "n")
    assert span_of(None, "c", "m")[0] == span_of(None, "c", "n")[0] != span_of(None, "d", "m")[0]


def test_a_run_without_findings_says_what_it_looked_at_and_the_same_case_gives_the_same_bytes() -> None:
    case = Case(version="1", parameters={"judge": "offline"}, messages=5, states={"unread": 4, "failed": 1})
    (body,) = requests(case)
    (record,) = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    told = attributes(record)
    assert (told["undersong.messages.unread"], told["undersong.messages.failed"]) == (4, 1)
    assert told["undersong.findings"] == 0
    assert lines(case) == lines(case)


class Scripted(BaseHTTPRequestHandler):
    """Answers as its server's script says, and keeps what it was sent."""

    server: Receiver

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.taken.append((self.path, headers, json.loads(gzip.decompress(data))))
        status, headers, body = self.server.script[min(len(self.server.taken), len(self.server.script)) - 1]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Receiver(ThreadingHTTPServer):
    script: list[tuple[int, dict[str, str], bytes]]
    taken: list[tuple[str, dict[str, str], dict[str, Any]]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(("127.0.0.1", 0), Scripted) as server:
        server.script, server.taken = [(200, {}, b"{}")], []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


CASE = Case(version="1", parameters={"judge": "offline"})


def address(receiver: Receiver) -> str:
    return f"http://127.0.0.1:{receiver.server_port}"


def test_what_a_receiver_cannot_take_now_is_sent_again_after_the_pause_that_it_asks_for(receiver: Receiver) -> None:
    receiver.script = [(503, {}, b""), (429, {"Retry-After": "7"}, b""), (200, {}, b"{}")]
    pauses: list[float] = []
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x = 1,broken"}
    assert send(CASE, address(receiver), environment=environment, pause=pauses.append) == 1
    assert pauses == [0.5, 7.0]
    first, _, third = receiver.taken
    assert first[2] == third[2]
    assert first[0] == "/v1/logs"
    assert (first[1]["api-key"], first[1]["x"], first[1]["content-type"]) == ("a b", "1", "application/json")


@pytest.mark.parametrize(
    ("answer", "what", "requests_made"),
    [
        ((400, {}, b"no"), "answered 400", 1),
        ((503, {}, b""), "answered 503", 4),
        ((302, {"Location": "http://127.0.0.1:1/v1/logs"}, b""), "answered 302", 1),
        ((200, {}, b'{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}'), "too old", 1),
    ],
)
def test_what_is_not_taken_is_an_error(
    receiver: Receiver, answer: tuple[int, dict[str, str], bytes], what: str, requests_made: int
) -> None:
    receiver.script = [answer]
    with pytest.raises(StoreError, match=what):
        send(CASE, address(receiver), environment={}, pause=lambda _: None)
    assert len(receiver.taken) == requests_made


def test_where_nobody_answers_the_report_is_written_and_the_exit_code_says_so(
    undersong: Undersong, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("undersong.bridges.otlp_sender.FIRST_PAUSE", 0.0)
    ran = undersong("audit", "samples", "--otlp", "http://name:secret@127.0.0.1:9/?key=secret")
    assert ran.code == 4
    assert "cannot be reached" in ran.err
    assert "secret" not in ran.err
    assert Path("undersong-report/manifest.json").is_file()
    assert undersong("audit", "samples", "--otlp", "collector:4318").code == 2


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/logs"),
        ("https://x.example/otlp/", "https://x.example/otlp/v1/logs"),
        ("https://x.example/v1/logs?a=b", "https://x.example/v1/logs?a=b"),
    ],
)
def test_the_address_of_logs_is_below_the_endpoint(endpoint: str, url: str) -> None:
    assert logs_url(endpoint) == url


@pytest.mark.parametrize("endpoint", ["localhost:4318", "file:///etc/passwd", "http://", "grpc://x:4317", ""])
def test_other_addresses_are_refused(endpoint: str) -> None:
    with pytest.raises(UsageError, match="is no address of http"):
        logs_url(endpoint)


def test_the_headers_of_logs_go_before_those_of_all_signals() -> None:
    environment = {"OTEL_EXPORTER_OTLP_LOGS_HEADERS": "k=2", "OTEL_EXPORTER_OTLP_HEADERS": "k=1,other=%3D"}
    assert headers_of(environment) == {"k": "2", "other": "="}


def test_a_case_of_more_events_than_a_request_holds_is_sent_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undersong.report.render.otlp.BATCH", 1)
    case, _ = library.audit([DEMO / "conversations" / "csv_import.json"])
    assert len(list(requests(case))) > 1
    assert lines(case).count(b"\n") == len(list(requests(case)))
