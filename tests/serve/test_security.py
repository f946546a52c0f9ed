"""Who may call, from where, how much may be sent, and what a browser may do with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from undersong.errors import UsageError
from undersong.serve.settings import ServeSettings, hosts_for, token_for
from undersong.stores.sqlite import SQLiteStore

from .conftest import Client, running
from .world import fill

PAGES = ("/", "/findings", "/review", "/leads", "/claims", "/agents", "/conversations", "/compare", "/live", "/rules",
         "/rules/darvo", "/runs", "/conversation?id=talk-00001", "/agent?name=talk-00001/ada", "/nothing", "/api/v1",
         "/api/v1/findings", "/api/v1/nothing")  # fmt: skip
FORM = "kind=finding&verdict=confirmed&id="


def first_id(client: Client) -> str:
    return client.get("/api/v1/findings?limit=1").json["items"][0]["finding_id"]  # type: ignore[no-any-return]


def test_every_answer_has_the_headers_that_keep_a_page_shut(client: Client) -> None:
    for path in PAGES:
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def test_no_page_has_a_script_or_a_style_of_its_own(client: Client) -> None:
    for path in PAGES[:14]:
        text = client.get(path).text
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick" not in text
        assert text.count("<script") == 1


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_another_name_is_refused_since_a_foreign_page_may_make_it_resolve_here(client: Client, host: str) -> None:
    answer = client.get("/api/v1/findings", Host=host)
    assert answer.status == 421
    assert answer.json["remedy"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:1", "[::1]:80"])
def test_names_of_this_machine_are_answered(client: Client, host: str) -> None:
    assert client.get("/", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_nothing_is_changed_from_another_site(client: Client, store: Path, headers: dict[str, str]) -> None:
    answer = client.form("/reviews", FORM + first_id(client), **headers)
    assert answer.status == 403
    assert "another site" in answer.text
    assert client.post("/api/v1/messages", {"id": "x"}, **headers).status == 403
    with SQLiteStore(store, read_only=True) as opened:
        assert list(opened.reviews()) == []


def test_a_foreign_page_cannot_load_ours_as_a_part_of_it_but_may_link_to_it(client: Client) -> None:
    foreign = {"Sec_Fetch_Site": "cross-site"}
    assert client.get("/api/v1/findings", Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script", **foreign).status == 403
    assert client.get("/", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document", **foreign).status == 200
    assert client.get("/", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe", **foreign).status == 403


def test_our_own_form_is_taken(client: Client, store: Path) -> None:
    answer = client.form("/reviews", FORM + first_id(client), Origin=client.address, Sec_Fetch_Site="same-origin")
    assert answer.status == 303
    with SQLiteStore(store, read_only=True) as opened:
        assert [review.verdict for review in opened.reviews()] == ["confirmed"]


def test_with_a_token_nobody_else_sees_anything(store: Path) -> None:
    token = "a-token-of-many-letters"
    with running(ServeSettings(store=store, token=token)) as client:
        for path in PAGES:
            assert client.get(path).status == 401
        assert client.get("/", Authorization="Bearer wrong").status == 401
        assert client.get("/?token=wrong").status == 401
        assert client.get("/", Authorization=f"Bearer {token}").status == 200
        entered = client.get(f"/findings?q=garden&token={token}")
        assert (entered.status, entered.headers["location"]) == (303, "/findings?q=garden")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert client.get("/", Cookie=cookie.partition(";")[0]).status == 200
        assert client.get("/static/x/serve.css").status == 200  # the page that asks for a token has its looks


def test_read_only_shows_and_takes_nothing(store: Path) -> None:
    with running(ServeSettings(store=store, read_only=True)) as client:
        name = first_id(client)
        assert 'id="decide"' not in client.get(f"/findings/{name}").text
        assert "This server only shows" in client.get("/review").text
        assert 'id="decide"' not in client.get("/review").text
        for path, body in (("/reviews", {"kind": "finding", "id": name, "verdict": "unsure"}), ("/messages", {})):
            answer = client.post(f"/api/v1{path}", body)
            assert (answer.status, answer.json["detail"]) == (403, "this server only shows")
        assert client.form("/reviews", FORM + name).status == 403


def test_a_large_body_is_refused_before_it_is_read_and_one_without_length_while_it_is(store: Path) -> None:
    with running(ServeSettings(store=store, upload_limit=10_000)) as client:
        assert client.post("/api/v1/messages", b"x", Content_Length=str(1 << 40)).status == 413
        assert (
            client.ask("POST", "/audits", b"x" * 20_000, Content_Type="multipart/form-data; boundary=b").status == 413
        )
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        headers = {"Transfer_Encoding": "chunked", "Content_Type": "multipart/form-data; boundary=b"}
        assert client.ask("POST", "/audits", chunk + b"0\r\n\r\n", **headers).status == 413


def test_a_token_is_made_for_any_address_but_this_machine_and_short_ones_are_refused() -> None:
    assert token_for("127.0.0.1", None) is token_for("::1", None) is token_for("localhost", None) is None
    assert len(token_for("0.0.0.0", None) or "") > 20
    assert token_for("127.0.0.1", "sixteen-letters!") == "sixteen-letters!"
    with pytest.raises(UsageError, match="fewer than 16"):
        token_for("0.0.0.0", "short")
    assert "0.0.0.0" not in hosts_for("0.0.0.0", ("Review.Local",))
    assert "review.local" in hosts_for("0.0.0.0", ("Review.Local",))


def test_a_token_of_the_environment_is_asked_for_and_stays_out_of_the_log(store: Path) -> None:
    token = "chosen-by-the-operator"
    command = [sys.executable, "-m", "undersong", "serve", str(store), "--host", "0.0.0.0", "--port", "0"]
    with subprocess.Popen(
        command, env=os.environ | {"UNDERSONG_TOKEN": token}, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline()
        client = Client(int(address.rpartition(":")[2].strip("/\n")))
        assert token not in address
        assert client.get("/").status == 401
        assert client.get("/api/v1/findings", Authorization=f"Bearer {token}").status == 200
        server.terminate()


def test_nothing_of_another_store_is_seen(tmp_path: Path) -> None:
    for name in ("mine", "other"):
        fill(tmp_path / f"{name}.db", 2, 3, 2, texts=[f"the word of {name}"] * 6)
        (tmp_path / f"{name}.db-uploads" / "20260101-000000-abcdef" / "report").mkdir(parents=True)
        (tmp_path / f"{name}.db-uploads" / "20260101-000000-abcdef" / "name.txt").write_text(f"{name}.zip")
    with running(ServeSettings(store=tmp_path / "mine.db")) as client:
        assert "the word of mine" in client.get("/conversation?id=talk-00000").text
        paths = ["/", "/runs", "/findings", "/conversations?q=word", "/agents", "/live", "/leads", "/claims"]
        paths += [
            "/runs/other/report",
            "/runs/..%2Fother/report.html",
            "/runs/report/..%2F..%2Fother.db",
            "/runs/other",
        ]
        paths += ["/static/x/..%2F..%2Fother.db", "/api/v1/search?words=word", "/api/v1/runs"]
        for path in paths:
            text = client.get(path).text
            assert "the word of other" not in text, path
            assert "other.zip" not in text, path
