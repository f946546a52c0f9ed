"""Moltbook: nested and flat comments give the same thread; authors are global."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "moltbook" / "posts.json"


def comment(key: str, parent: str | None, minute: int, author: Any = "Bix", **fields: Any) -> dict[str, Any]:
    time = f"2026-01-01T00:{minute:02}:00Z"
    return {"id": key, "parent_id": parent, "content": key, "created_at": time, "author": author, **fields}


def post(comments: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "p", "title": "T", "content": "B", "submolt": "s", "author": {"id": "1", "name": "Abe"},
            "created_at": "2026-01-01T00:00:00Z", "comments": comments, **fields}  # fmt: skip


def test_nested_and_flat_comments_are_one_thread(ingest: Any) -> None:
    nested = post([comment("1", None, 1, replies=[comment("2", "1", 2)]), comment("3", None, 3)])
    flat = post([comment("3", None, 3), comment("1", None, 1), comment("2", "1", 2)])
    seen = [
        [(each.id, each.reply_to, each.target) for each in ingest([given]).only.messages] for given in (nested, flat)
    ]
    assert seen[0] == seen[1] == [("p", None, "Bix"), ("1", "p", "Abe"), ("2", "1", "Abe"), ("3", "p", "Abe")]


def test_a_reply_that_stands_nested_and_flat_is_read_once(ingest: Any) -> None:
    result = ingest([post([comment("1", None, 1, replies=[comment("2", "1", 2)]), comment("2", "1", 2)])])
    assert [message.id for message in result.only.messages] == ["p", "1", "2"]


def test_authors_are_global_and_a_missing_one_is_nobody() -> None:
    thread = outcome(SAMPLE).conversations[0]
    assert [message.agent for message in thread.messages] == ["Oolong", "Sencha", "p-nested/(unknown)", "Oolong"]
    assert thread.messages[0].text == "On steeping\nFour minutes is enough."


def test_short_messages_and_posts_without_a_body_are_kept() -> None:
    nested, flat = outcome(SAMPLE).conversations
    assert "ok" in [message.text for message in nested.messages]
    assert flat.messages[0].text == "Kettles"


def test_the_answer_of_a_list_and_of_a_single_post_are_read(ingest: Any) -> None:
    listed = ingest({"success": True, "posts": [post([]), post([], id="q")], "count": 2})
    assert [conversation.id for conversation in listed.conversations] == ["p", "q"]
    single = post(None)
    single.pop("comments")
    assert len(ingest({"post": single, "comments": [comment("1", None, 1)]}).only.messages) == 2


def test_cut_threads_are_read(ingest: Any) -> None:
    messages = [{"author": "Abe", "content": "a", "created_at": None, "message_type": "post"},
                {"author": "Bix", "content": "b", "created_at": None, "message_type": "comment"}]  # fmt: skip
    result = ingest([{"thread_id": "p::k", "post_title": "T", "messages": messages}])
    assert result.files[0].source_format == "moltbook"
    assert [(message.agent, message.target) for message in result.only.messages] == [("Abe", "Bix"), ("Bix", "Abe")]


def test_wrong_comments_are_reported_and_their_replies_read(ingest: Any) -> None:
    broken = comment("1", None, 1, content=None, replies=[comment("2", "1", 2), 5])
    result = ingest([post([broken, None]), post("none", id="q"), 4])
    assert [message.id for message in result.conversations[0].messages] == ["p", "2"]
    assert [problem.where.split("#")[1] for problem in result.problems if problem.kind == "record"] == [
        "/0/comments/0", "/0/comments/0/replies/1", "/0/comments/1", "/1/comments", "/2"
    ]  # fmt: skip
