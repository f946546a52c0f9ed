"""The decisions one by one: the page with the latest of each thing, and all of them as files."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from undersong.models import Review, decisions_of, encode, in_force
from undersong.serve.pages import page, site_of
from undersong.stores.csv_tables import table_text

SHOWN = 200  # decisions on the page


def decisions(request: Request) -> Response:
    """The latest decision of each thing, the newest first, with what was decided of it before."""
    store = site_of(request).library.store
    every = decisions_of(store.reviews())
    of: dict[tuple[str, str], list[Review]] = {}
    for review in every:
        name = review.kind, review.id
        of[name] = [*of.pop(name, ()), review]
    newest = [*of.values()][::-1]
    entries = [
        (last, store.finding(last.id) if last.kind == "finding" else None, tuple(earlier))
        for *earlier, last in newest[:SHOWN]
    ]
    decided = len({(review.kind, review.id) for review in in_force(every)})
    values = {"entries": entries, "total": len(newest), "decided": decided, "more": max(0, len(newest) - SHOWN)}
    return page(request, "decisions.html.j2", "/review", **values)


def decisions_jsonl(request: Request) -> Response:
    """Every review, one a line."""
    lines = b"".join(encode(review) + b"\n" for review in decisions_of(site_of(request).library.store.reviews()))
    return _file(lines, "application/x-ndjson", "jsonl")


def decisions_csv(request: Request) -> Response:
    """Every review, a row each."""
    text = table_text("reviews", decisions_of(site_of(request).library.store.reviews()))
    return _file(text.encode("utf-8", "replace"), "text/csv; charset=utf-8", "csv")


def _file(content: bytes, kind: str, ending: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="decisions.{ending}"'}
    return Response(content, media_type=kind, headers=headers)
