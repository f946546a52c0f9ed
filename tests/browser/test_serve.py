"""The pages of a server in a real browser: every page, two days of use, hostile text, others who write meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

pytest.importorskip("starlette")
pytest.importorskip("axe_core_python")

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.conftest import PATIENCE
from tests.report.payloads import TWO_HUNDRED
from tests.serve.conftest import Client, running
from tests.serve.world import claim_of, conversation, fill, lead_of
from undersong.models import Scan, ThreadScan
from undersong.serve.settings import ServeSettings
from undersong.stores.sqlite import SQLiteStore

SAMPLES = Path(__file__).parents[1] / "samples"
ADDED = "img,iframe,object,embed,base,math,video,audio,style,h1:nth-of-type(n+2),script:not([src^='/static/'])"


DROP = """bytes => {
  const files = new DataTransfer();
  files.items.add(new File([new Uint8Array(bytes)], "notes.bin"));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


NOTE_PROGRESS = """new MutationObserver(() => {
  const words = document.querySelector("[data-job]");
  if (!words || !document.querySelector("progress[data-bar]")) return;
  sessionStorage.setItem("progress", `${sessionStorage.getItem("progress") || ""} ${words.innerText}`);
}).observe(document, { childList: true, subtree: true });"""


@dataclass
class Visit:
    """A browser at a server, and all that it complained about."""

    page: Page
    client: Client
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Open a page of the server."""
        answer = self.page.goto(self.client.address + path)
        assert answer is not None
        assert answer.status == 200, path
        return self.page


def visiting(context: BrowserContext, client: Client) -> Visit:
    """A new tab; what it says on the console, and what it asks of other hosts, is a complaint."""
    context.set_default_timeout(PATIENCE)
    visit = Visit(context.new_page(), client)
    page, heard = visit.page, visit.complaints
    page.on("console", lambda line: heard.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: (heard.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda asked: None if asked.url.startswith(client.address) else heard.append(asked.url))
    page.on("response", lambda got: heard.append(f"{got.status} {got.url}") if got.status >= 500 else None)
    return visit


@pytest.fixture
def visit(browser: Browser, client: Client) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    opened = visiting(context, client)
    yield opened
    context.close()
    assert opened.complaints == []


@pytest.fixture
def store(tmp_path: Path) -> Path:
    fill(tmp_path / "s.db", 12, 10, 10)
    return tmp_path / "s.db"


@pytest.fixture
def client(store: Path) -> Iterator[Client]:
    with running(ServeSettings(store=store)) as opened:
        yield opened


CUT_OFF = (
    "[...document.querySelectorAll('#decide .button, #decide button')]"
    ".some(button => button.getBoundingClientRect().right > innerWidth)"
)


def every_page(client: Client) -> list[str]:
    """An address of every kind of page."""
    finding = client.get("/api/v1/findings?limit=1").json["items"][0]["finding_id"]
    lead = client.get("/api/v1/leads?limit=1").json["items"][0]["id"]
    claim = client.get("/claims").text.partition('href="/claims/')[2].partition('"')[0]
    return [
        "/", f"/review?was={finding}", "/review?from=lead", "/review?from=claim", "/review/figures",
        "/review/decisions", "/findings", f"/findings/{finding}", "/findings?q=garden",
        "/findings?q=nothinghasthisword",
        "/leads", f"/leads/{lead}", "/claims", f"/claims/{claim}", "/agents", "/agent?name=talk-00001/ada",
        "/conversations", "/conversations?q=garden", "/conversation?id=talk-00001&at=3", "/compare",
        "/compare?by=agent", "/live", "/rules", "/rules/love_bombing", "/runs",
    ]  # fmt: skip


def test_axe_finds_no_serious_fault_on_any_page_and_no_page_is_wider_than_a_phone(
    browser: Browser, client: Client
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    visit, axe, faults = visiting(context, client), Axe(), []
    faults_alone = {"resultTypes": ["violations"]}  # the rest is neither described nor sent
    colours = faults_alone | {"runOnly": ["color-contrast", "link-in-text-block"]}  # all that differs in the dark
    for path in every_page(client):
        page = visit.go(path)
        page.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true; })")
        for scheme, options in (("light", faults_alone), ("dark", colours)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            violations = axe.run(page, options=options)["violations"]
            serious = [each for each in violations if each["impact"] in ("serious", "critical")]
            faults += [(path, scheme, each["id"], each["nodes"][0]["html"][:200]) for each in serious]
            if page.evaluate(f"document.documentElement.scrollWidth > innerWidth || {CUT_OFF}"):
                faults.append((path, scheme, "wider than the screen", ""))
    context.close()
    assert faults == []
    assert visit.complaints == []


def test_every_link_of_every_page_leads_somewhere(visit: Visit) -> None:
    seen, waiting = set[str](), every_page(visit.client)
    while waiting:
        path = waiting.pop()
        if path in seen or len(seen) > 150:
            continue
        seen.add(path)
        answer = visit.client.get(path)
        assert answer.status in (200, 303), path
        if len(seen) < 30:
            links = visit.go(path).eval_on_selector_all("a[href^='/']", "all => all.map(a => a.getAttribute('href'))")
            waiting += [link.partition("#")[0] for link in links]
    assert len(seen) > 60


def test_lists_and_search_and_help_work_by_keys_alone(visit: Visit) -> None:
    page = visit.go("/findings")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.eval_on_selector_all("[data-list] a.row", "all => all[1].getAttribute('href')")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith(second)
    page.keyboard.press("/")
    page.keyboard.type("garden")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/findings?q=garden")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    for _ in range(3):  # the first stop is the way past the sections
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
    page.goto(f"{visit.client.address}/findings?sure=likely&sort=level&reviewed=none")
    assert page.locator("select[name=sort]").input_value() == "level"
    assert "ikely" in page.inner_text("[data-list] li:first-child .side")


def test_models_and_authors_stand_side_by_side(visit: Visit) -> None:
    assert "m-1" in visit.go("/compare").inner_text("tbody")
    page = visit.go("/compare?by=agent")
    assert "talk-00001/ada" in page.inner_text("tbody")
    with page.expect_navigation():
        page.click("tbody a >> nth=0")
    names = page.eval_on_selector_all("svg.heat text", "all => all.map(one => one.textContent)")
    assert {"manipulation", "compassion"} <= set(names)  # traits over time, whom it addresses, and where findings lie
    assert any(name.startswith("to ") for name in names)
    assert page.locator("svg.heat rect.harmful").count() > 0


def test_a_moderator_decides_on_fifty_findings_with_keys_alone(browser: Browser, tmp_path: Path) -> None:
    fill(tmp_path / "m.db", 20, 8, 50)
    with running(ServeSettings(store=tmp_path / "m.db")) as client:
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        visit = visiting(context, client)
        page = visit.go("/review")
        assert "very likely" not in page.inner_text("main").lower()  # how sure it is stays hidden
        assert "the messages show it" in page.inner_text("main")  # what the verdicts mean, at the first one
        assert page.inner_text("#asked").startswith("Is what ada wrote to ")
        page.click(".stages a[href^='#c'] >> nth=0")  # the message in its context, on the same page
        assert page.url.partition("#")[0].endswith("/review")
        assert page.locator(".turns > li:target").is_visible()
        for number in range(50):
            if number == 3:
                page.keyboard.press("n")
                page.keyboard.type("he jokes; c r u j are no keys in a note")
                page.fill("#reviewer", "Ida")
                page.keyboard.press("Escape")
                page.keyboard.press("2")  # the second reason
            if number == 5:
                page.keyboard.press("4")
                page.keyboard.press("h")
                assert "How sure:" in page.inner_text("main")
                assert page.is_checked("[data-reason='4']")  # what was chosen before stays
            if number == 7:  # put one off: another one comes
                before = page.input_value("input[name=id]")
                with page.expect_navigation():
                    page.keyboard.press("s")
                assert page.input_value("input[name=id]") != before
            if number == 9:  # look at the last one again, and think better of it
                with page.expect_navigation():
                    page.keyboard.press("b")
                assert "decide anew" in page.inner_text("main").lower()
                assert "hidden until" not in page.inner_text("main")  # it is decided
                with page.expect_navigation():
                    page.keyboard.press("r")
            with page.expect_navigation():
                page.keyboard.press("cru"[number % 3])
        assert "Nothing is left" in page.inner_text("h1")
        context.close()
        assert visit.complaints == []
    with SQLiteStore(tmp_path / "m.db", read_only=True) as opened:
        reviews = list(opened.reviews())
    assert (
        len(reviews) == 52
    )  # one anew, and one again as the draw came upon it, after it had been chosen before its turn
    assert len({each.id for each in reviews}) == 50
    noted = next(each for each in reviews if each.note)
    assert (noted.note, noted.reasons, noted.reviewer) == (
        "he jokes; c r u j are no keys in a note", ("joke or fiction",), "Ida",
    )  # fmt: skip
    assert [each.shown_score for each in reviews].count(True) == 2  # by h, and where it was decided anew
    assert all(each.propensity for each in reviews if each.drawn != "chosen")


def test_a_person_drops_an_export_and_reads_what_was_found(browser: Browser, tmp_path: Path) -> None:
    SQLiteStore(tmp_path / "mine.db").close()
    export = tmp_path / "export <b>.zip"
    few = json.loads((SAMPLES / "chatgpt" / "conversations.json").read_bytes())
    many = [each | {"id": f"{each['id']}-{n}"} for n in range(8) for each in few]  # else it ends before one can look
    with zipfile.ZipFile(export, "w") as archive:
        archive.writestr("conversations.json", json.dumps(many))
    with running(ServeSettings(store=tmp_path / "mine.db")) as client:
        context = browser.new_context(viewport={"width": 390, "height": 800})
        context.add_init_script(NOTE_PROGRESS)
        visit = visiting(context, client)
        page = visit.go("/")
        assert "This store is empty" in page.inner_text("main")
        page.set_input_files("#file", export)
        page.click("text=Audit it")
        page.wait_for_url("**/runs/*")
        words = page.evaluate("sessionStorage.getItem('progress')") or ""  # of the page before, however soon it went
        assert any(word in words.lower() for word in ("reading", "scanning", "scoring", "looking", "weighing",
                                                      "writing", "waiting")), words  # fmt: skip
        assert page.inner_text("h1") == "export <b>.zip"
        assert "Looked at" in page.inner_text("main")
        with page.expect_navigation():
            page.click("text=The whole report")
        assert "undersong" in page.title()
        visit.go("/conversations")
        with page.expect_navigation():
            page.click("a.row >> nth=0")
        assert page.locator(".turns > li").count() > 0
        nothing = tmp_path / "notes.bin"
        nothing.write_bytes(os.urandom(2000))
        visit.go("/")
        with page.expect_navigation():  # dropped anywhere on the page
            page.evaluate(DROP, [*nothing.read_bytes()])
        page.wait_for_selector("[role=alert]")
        assert "not the same as finding nothing" in page.inner_text("main")
        context.close()
        assert visit.complaints == []
    uploads = tmp_path / "mine.db-uploads"
    assert [path for path in uploads.glob("*/file/*")] == []  # what was dropped does not stay
    assert uploads.stat().st_mode & 0o077 == 0


def test_two_hundred_hostile_texts_stay_text(browser: Browser, tmp_path: Path) -> None:
    fill(tmp_path / "h.db", 10, 20, 20, texts=TWO_HUNDRED, leads=10)
    hostile = conversation(77, 3, TWO_HUNDRED[:3])
    named = '"><img src=x onerror=alert(1)>/<b>../..'
    with SQLiteStore(tmp_path / "h.db") as opened:
        other = {"agent": named, "author": named, "target": f"?&#x22;{named}", "conversation": named}
        messages = tuple(msgspec.structs.replace(message, **other) for message in hostile.messages)
        talk = msgspec.structs.replace(hostile, id=named, messages=messages)
        scans = tuple(Scan(message_id=message.id) for message in messages)
        opened.put_conversation(talk, scans, ThreadScan(conversation=named))
        opened.put_leads([named], [lead_of(talk, 1)])
        opened.put_claims([named], [claim_of(talk)])
    with running(ServeSettings(store=tmp_path / "h.db")) as client:
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        visit = visiting(context, client)
        names = [each["finding_id"] for each in client.get("/api/v1/findings").json["items"]]
        paths = [f"/conversation?id=talk-{number:05}" for number in range(10)]
        paths += [f"/findings/{name}" for name in names] + ["/", "/findings", "/review", "/live", "/agents", "/leads"]
        paths += ["/claims", "/conversations", "/compare?by=agent", "/conversations?q=alert", "/findings?q=alert"]
        for path in paths:
            page = visit.go(path)
            assert page.eval_on_selector_all(ADDED, "all => all.map(one => one.outerHTML)") == [], path
        for path in ("/conversations", "/agents", "/leads"):  # by the links of our own pages
            page = visit.go(path)
            with page.expect_navigation():
                page.click("a.row:has-text('onerror')")
            assert page.locator("h1").count() == 1
            assert page.title().startswith("There is no such") is False
        context.close()
        assert visit.complaints == []


def test_a_page_of_another_site_can_change_nothing(
    browser: Browser, client: Client, store: Path, tmp_path: Path
) -> None:
    name = client.get("/api/v1/findings?limit=1").json["items"][0]["finding_id"]
    other = tmp_path / "other.html"
    target = client.address
    other.write_text(
        f"<form id=f method=post action='{target}/reviews'><input name=kind value=finding><input name=id value={name}>"
        f"<input name=verdict value=rejected></form><img src='{target}/'><script>"
        f"fetch('{target}/api/v1/findings').then(() => document.title = 'read', () => document.title = 'refused');"
        f"fetch('{target}/api/v1/reviews', {{method: 'POST', mode: 'no-cors', body: '{{}}'}}).catch(() => 0);</script>"
    )
    context = browser.new_context()
    page = context.new_page()
    page.goto(other.as_uri())
    page.wait_for_function("document.title !== ''")
    assert page.title() == "refused"
    with page.expect_navigation():
        page.evaluate("document.getElementById('f').submit()")
    assert "another site" in page.inner_text("main")
    context.close()
    with SQLiteStore(store, read_only=True) as opened:
        assert list(opened.reviews()) == []


def test_what_others_write_appears_and_two_people_decide_at_once(visit: Visit, browser: Browser, store: Path) -> None:
    page = visit.go("/live")
    page.wait_for_selector(".live-state.on")
    talk = conversation(500, 4, ["<b>new</b> words of another program"])
    scans = tuple(Scan(message_id=message.id) for message in talk.messages)
    with SQLiteStore(store) as opened:  # a second writer
        opened.put_conversation(talk, scans, ThreadScan(conversation=talk.id))
    page.wait_for_selector("[data-stream=messages] li.new >> text=<b>new</b> words")
    other = visiting(browser.new_context(), visit.client)
    one, two = visit.go("/review"), other.go("/review")
    stop = threading.Event()

    def write() -> None:
        with SQLiteStore(store) as opened:
            while not stop.is_set():
                opened.put_conversation(talk, scans, ThreadScan(conversation=talk.id))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(4):
            for each in (one, two):
                with each.expect_navigation():
                    each.keyboard.press("c")
    finally:
        stop.set()
        writer.join()
    with SQLiteStore(store, read_only=True) as opened:
        assert len(list(opened.reviews())) == 8
    other.page.context.close()
    assert other.complaints == []


@contextmanager
def started(*arguments: str, folder: Path) -> Iterator[Client]:
    """A server as people start it; it is killed at the end, without a word."""
    command = [sys.executable, "-m", "undersong", "serve", *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stdout is not None
            yield Client(urlsplit(process.stdout.readline().strip()).port or 0)
        finally:
            process.kill()


def test_a_killed_server_loses_no_decision(browser: Browser, store: Path) -> None:
    context, decided = browser.new_context(), 0
    for _ in range(2):
        with started(str(store), folder=store.parent) as client:
            page = visiting(context, client).go("/review")
            for _ in range(3):
                with page.expect_navigation():
                    page.keyboard.press("u")
                decided += 1
    context.close()
    with SQLiteStore(store, read_only=True) as opened:
        assert len(list(opened.reviews())) == decided == 6


def test_a_finished_report_opens_with_and_without_its_store(browser: Browser, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES.parents[1] / "demo", tmp_path / "demo")
    judge = f"replay:{tmp_path}/demo/readings.replay"
    audit = ["audit", f"{tmp_path}/demo/conversations", "--read", "sequences", "--judge", judge, "--out", "r"]
    subprocess.run([sys.executable, "-m", "undersong", *audit], cwd=tmp_path, check=True, capture_output=True)
    for with_store in (True, False):
        if not with_store:
            (tmp_path / "r.db").unlink()
        with started("r", folder=tmp_path) as client:
            visit = visiting(browser.new_context(), client)
            page = visit.go("/")
            assert "consistent with love bombing" in page.inner_text("main")
            with page.expect_navigation():
                page.click("text=All of it, stage by stage")
            assert "She may only be hurt" in page.inner_text("main")
            assert page.locator("#decide").count() == int(with_store)
            assert "the price is not his to pay" in page.inner_text(".stage.other")
            assert json.loads(client.get("/api/v1").text)["writable"] is with_store
            visit.page.context.close()
        assert visit.complaints == []
