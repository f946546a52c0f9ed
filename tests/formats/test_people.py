"""Exports as people have them: what is read, by whom, when, and what is said to be left out."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.formats.conftest import Outcome, outcome

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"


def zipped(path: Path, members: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            data = content if isinstance(content, str | bytes) else json.dumps(content, ensure_ascii=False)
            archive.writestr(name, data)
    return path


def said(result: Outcome, number: int = 0) -> list[tuple[str, str, str]]:
    """Time of day, author and words of each message."""
    messages = result.conversations[number].messages
    return [(str(each.time)[11:16], each.author, each.text) for each in messages]


def notes(result: Outcome) -> set[str]:
    assert [each for each in result.problems if each.kind != "note"] == []
    return set(result.problem_texts("note"))


def node(name: str, parent: str | None, children: list[str], message: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"id": name, "message": message, "parent": parent, "children": children}


def chatgpt(key: str, role: str, time: float | None, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": key, "author": {"role": role, "name": more.pop("name", None), "metadata": {}}, "create_time": time,
            "update_time": None, "content": content, "status": "finished_successfully", "end_turn": True, "weight": 1.0,
            "metadata": {}, "recipient": "all", "channel": None} | more  # fmt: skip


def text(*parts: Any, kind: str = "text") -> dict[str, Any]:
    return {"content_type": kind, "parts": list(parts)}


IMAGE = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "size_bytes": 9}
SPOKEN = {"content_type": "audio_transcription", "text": "And if I say no?", "direction": "in", "decoding_id": None}
CITED = "Three months are the most. \ue200cite\ue202turn0search0\ue201 Ask them."
LEASE = {
    "root": node("root", None, ["s"]),
    "s": node("s", "root", ["u1"], chatgpt("s", "system", None, text(""), weight=0.0)),
    "u1": node("u1", "s", ["a0", "a1"], chatgpt("u1", "user", 1772000010.5, text(IMAGE, "Is this lease fair?",
               kind="multimodal_text"), metadata={"attachments": [{"id": "file_1", "name": "lease.png"}]})),
    "a0": node("a0", "u1", [], chatgpt("a0", "assistant", 1772000015.0, text("It looks fair."))),
    "a1": node("a1", "u1", ["t"], chatgpt("a1", "assistant", 1772000016.0, {"content_type": "thoughts", "thoughts": [
               {"summary": "Checking", "content": "I look up the law"}], "source_analysis_msg_id": "x"})),
    "t": node("t", "a1", ["r"], chatgpt("t", "assistant", 1772000018.0, {"content_type": "code", "language": "unknown",
              "text": 'search("deposit")'}, recipient="web.run")),
    "r": node("r", "t", ["a2"], chatgpt("r", "tool", 1772000019.0, {"content_type": "execution_output",
              "text": "Civil code, three months"}, name="web.run")),
    "a2": node("a2", "r", ["u2"], chatgpt("a2", "assistant", 1772000025.0, text(CITED))),
    "u2": node("u2", "a2", [], chatgpt("u2", "user", 1772000100.0, text(SPOKEN, kind="multimodal_text"))),
}  # fmt: skip


def test_a_chatgpt_export_of_today(tmp_path: Path) -> None:
    conversation = {"id": "6a1", "conversation_id": "6a1", "title": "Moving out", "create_time": 1772000000.1,
                    "update_time": 1772000900.2, "mapping": LEASE, "current_node": "u2", "default_model_slug": "gpt-5",
                    "moderation_results": [], "plugin_ids": None, "gizmo_id": None, "safe_urls": [],
                    "is_archived": False, "memory_scope": "global_enabled"}  # fmt: skip
    result = outcome(zipped(tmp_path / "export.zip", {
        "conversations.json": [conversation], "user.json": {"id": "user-1", "email": "ada@example.org"},
        "message_feedback.json": [], "chat.html": "<html></html>", "file_1-lease.png": PNG,
    }))  # fmt: skip
    assert (result.only.title, str(result.only.started_at)[:16]) == ("Moving out", "2026-02-25 06:13")
    assert said(result) == [
        ("06:13", "user", "Is this lease fair?"),
        ("06:13", "assistant", "It looks fair."),
        ("06:13", "assistant", ""),
        ("06:13", "web.run", "Civil code, three months"),
        ("06:13", "assistant", "Three months are the most. Ask them."),
        ("06:15", "user", "And if I say no?"),
    ]
    assert [each.branch for each in result.only.messages] == [None, "a0", None, None, None, None]
    assert result.only.messages[2].tool_calls[0].input == 'search("deposit")'
    assert notes(result) == {
        "1 × hidden message, not read",
        "1 × attached file, not read",
        "1 × image or other block that is not text, not read",
        "1 × thoughts message (not said to the user), not read",
        "1 × mark of a citation, not read",
        "2 members of another ending, not read: chat.html, file_1-lease.png",
        "2 members of no known format, not read: message_feedback.json, user.json",
    }


def test_a_claude_export_of_today(tmp_path: Path) -> None:
    at = {
        "created_at": "2026-02-25T06:13:31.0Z",
        "updated_at": "2026-02-25T06:13:31.0Z",
        "attachments": [],
        "files": [],
    }
    stamps = {"start_timestamp": "2026-02-25T06:13:29.0Z", "stop_timestamp": "2026-02-25T06:13:31.0Z", "flags": None}
    blocks = [
        stamps | {"type": "thinking", "thinking": "A short letter.", "summaries": [], "cut_off": False},
        stamps | {"type": "tool_use", "id": "t1", "name": "artifacts", "input": {"content": "Dear Sir"}},
        {"type": "tool_result", "tool_use_id": "t1", "name": "artifacts", "content": [{"type": "text", "text": "OK"}]},
        stamps | {"type": "text", "text": "Here it is.", "citations": []},
    ]
    asked = [stamps | {"type": "text", "text": "Please write a letter.", "citations": []}]
    attached = {
        "attachments": [{"file_name": "lease.txt", "file_type": "txt", "extracted_content": "The tenant pays."}]
    }
    letter = {"uuid": "c1", "name": "A letter", "summary": "", "account": {"uuid": "x"}, "chat_messages": [
        at | attached | {"uuid": "m1", "sender": "human", "text": "Please write a letter.", "content": asked},
        at | {"uuid": "m2", "sender": "assistant", "text": "Here it is.", "content": blocks},
    ]}  # fmt: skip
    empty = {"uuid": "c2", "name": "", "summary": "", "account": {"uuid": "x"}, "chat_messages": []}
    result = outcome(zipped(tmp_path / "data.zip", {
        "conversations.json": [letter, empty], "users.json": [{"uuid": "x", "full_name": "Ada"}], "projects.json": [],
    }))  # fmt: skip
    assert said(result) == [("06:13", "human", "Please write a letter."), ("06:13", "assistant", "Here it is.")]
    answer = result.only.messages[1]
    assert (answer.latency, answer.tool_calls[0].input, answer.tool_results[0].text) == (
        2,
        {"content": "Dear Sir"},
        "OK",
    )
    assert notes(result) == {
        "1 × attached file, not read",
        "1 × thinking block (not said to the user), not read",
        "1 × conversation without messages",
        "2 members of no known format, not read: projects.json, users.json",
    }


ENGLISH = """[04/03/2026, 21:14:05] Marla: \u200eMessages and calls are end-to-end encrypted.
[04/03/2026, 21:15:05] Marla: Hi! Is the room free?
[04/03/2026, 21:16:10] Ada: Yes: come and see it
bring your papers
\u200e[04/03/2026, 21:17:00] Ada: the kitchen \u200e<attached: 00000004-PHOTO.jpg>
[13/03/2026, 09:00:00] Marla: \u200eYou deleted this message.
[13/03/2026, 09:01:00] Marla: Great, I take it \u200e<This message was edited>
[13/03/2026, 09:02:00] Ada: \u200eMissed voice call, \u200eTap to call back
"""
GERMAN = """04.03.26, 21:14 - Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt. Mehr erfahren.
04.03.26, 21:14 - Jonas hat die Gruppe „WG: Lindenweg“ erstellt.
04.03.26, 21:15 - Jonas: Wer putzt heute?
04.03.26, 21:16 - Ada: Ich nicht: ich war gestern dran
04.03.26, 21:17 - Jonas: IMG-20260304-WA0003.jpg (Datei angehängt)
So sieht die Küche aus
04.03.26, 21:18 - Mira: <Medien ausgeschlossen>
04.03.26, 21:20 - Mira: Morgen dann <Diese Nachricht wurde bearbeitet.>
05.03.26, 08:00 - Mira hat das Gruppenbild geändert.
05.03.26, 08:02 - +49 170 1234567: bin neu hier
"""
SPANISH = """4/3/26, 9:14\u202fp.\xa0m. - Los mensajes y las llamadas están cifrados de extremo a extremo.
4/3/26, 9:14\u202fp.\xa0m. - Lucía: ¿Vienes mañana?
4/3/26, 9:17\u202fp.\xa0m. - Lucía: AUD-20260304-WA0001.opus (archivo adjunto)
4/3/26, 9:18\u202fp.\xa0m. - Ada: Eliminaste este mensaje.
4/3/26, 9:19\u202fp.\xa0m. - Lucía: a las ocho <Se editó este mensaje.>
13/3/26, 10:00\u202fa.\xa0m. - Lucía cambió el asunto de “Cena” a “Cena: sábado”
13/3/26, 10:01\u202fa.\xa0m. - Ada: Vale
"""
INSTEAD = "picture, recording or deleted message, which the export leaves out"
EDITED, ATTACHED = "1 × edited message, read in its last wording", "1 × attached file, not read"


def test_whatsapp_in_english_german_and_spanish(tmp_path: Path) -> None:
    english = outcome(
        zipped(tmp_path / "WhatsApp Chat - Marla.zip", {"_chat.txt": ENGLISH, "00000004-PHOTO.jpg": JPEG})
    )
    assert said(english) == [
        ("21:15", "Marla", "Hi! Is the room free?"),
        ("21:16", "Ada", "Yes: come and see it\nbring your papers"), ("21:17", "Ada", "the kitchen"),
        ("09:00", "Marla", ""), ("09:01", "Marla", "Great, I take it"), ("09:02", "Ada", ""),
    ]  # fmt: skip
    pictures = "1 member of another ending, not read: 00000004-PHOTO.jpg"
    assert notes(english) == {f"2 × {INSTEAD}", EDITED, ATTACHED, "1 × notice of the messenger, not read", pictures}
    german = outcome(zipped(tmp_path / "de.zip", {"WhatsApp Chat mit WG.txt": GERMAN}))
    assert said(german) == [
        ("21:15", "Jonas", "Wer putzt heute?"), ("21:16", "Ada", "Ich nicht: ich war gestern dran"),
        ("21:17", "Jonas", "So sieht die Küche aus"), ("21:18", "Mira", ""), ("21:20", "Mira", "Morgen dann"),
        ("08:02", "+49 170 1234567", "bin neu hier"),
    ]  # fmt: skip
    assert notes(german) == {f"1 × {INSTEAD}", EDITED, ATTACHED, "3 × notice of the messenger, not read"}
    spanish = outcome(zipped(tmp_path / "es.zip", {"Chat de WhatsApp con Lucía.txt": SPANISH}))
    assert said(spanish) == [
        ("21:14", "Lucía", "¿Vienes mañana?"), ("21:17", "Lucía", ""), ("21:18", "Ada", ""),
        ("21:19", "Lucía", "a las ocho"), ("10:01", "Ada", "Vale"),
    ]  # fmt: skip
    assert notes(spanish) == {f"1 × {INSTEAD}", EDITED, ATTACHED, "2 × notice of the messenger, not read"}
    assert {str(each.only.messages[-1].time)[:10] for each in (english, german, spanish)} == {
        "2026-03-13",
        "2026-03-05",
    }


def telegram(number: int, who: str, words: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "type": "message", "date": f"2026-03-02T08:{number:02}:00", "from": who, "text_entities": [],
            "date_unixtime": str(1772438400 + 60 * number), "from_id": f"user{who}",
            "text": words} | more  # fmt: skip


def test_a_telegram_account_with_calls_links_voices_and_forwarded_words(tmp_path: Path) -> None:
    link = {"type": "link", "text": "https://example.org/bill"}
    noor = [
        {
            "id": 1,
            "type": "service",
            "date_unixtime": "1772438400",
            "actor": "Noor",
            "action": "phone_call",
            "text": "",
        },
        telegram(10, "Noor", "did the boiler man come?"),
        telegram(11, "Ivo", ["he did, see ", link], reply_to_message_id=10, edited="2026-03-02T08:12:00"),
        telegram(
            12, "Noor", "", file="(File not included. Change data exporting settings.)", media_type="voice_message"
        ),
        telegram(13, "Ivo", "Your appointment is confirmed.", forwarded_from="Heating Ltd"),
    ]
    account = {"about": "Here is the data you requested.", "personal_information": {"bio": "I like boats."}, "chats": {
        "about": "Pell keeps this list.", "list": [
            {"name": "Noor", "type": "personal_chat", "id": 5, "messages": noor},
            {"type": "saved_messages", "id": 6, "messages": []},
        ]}}  # fmt: skip
    (tmp_path / "result.json").write_text(json.dumps(account))
    result = outcome(tmp_path / "result.json")
    assert said(result) == [
        ("08:10", "Noor", "did the boiler man come?"), ("08:11", "Ivo", "he did, see https://example.org/bill"),
        ("08:12", "Noor", ""), ("08:13", "Ivo", "Your appointment is confirmed."),
    ]  # fmt: skip
    assert notes(result) == {
        "1 × words under 'about', not read",
        "1 × words under 'personal_information', not read",
        "1 × service message of Telegram (joined, called, pinned), not read",
        EDITED,
        "1 × picture, recording or other attachment, not read",
        "1 × forwarded message, read as its forwarder's",
        "1 × conversation without messages",
    }


def test_a_signal_export_with_a_group_quotes_edits_and_what_has_no_words(tmp_path: Path) -> None:
    def item(chat: int, author: int, minute: int, **content: Any) -> dict[str, Any]:
        way = {"outgoing": {"sendStatus": []}} if author == 1 else {"incoming": {"read": True}}
        sent = str(1772438400000 + 60_000 * minute)
        return {"chatItem": {"chatId": str(chat), "authorId": str(author), "dateSent": sent, **way, **content}}

    def words(body: str, **more: Any) -> dict[str, Any]:
        return {"standardMessage": {"text": {"body": body, "bodyRanges": []}, **more}}

    frames = [
        {"version": "1", "backupTimeMs": "1772500000000"},
        {"account": {"profileKey": "AA==", "givenName": "Ada", "familyName": ""}},
        {"recipient": {"id": "1", "self": {}}},
        {"recipient": {"id": "2", "contact": {"e164": "491701234567", "profileGivenName": "Marla"}}},
        {"recipient": {"id": "3", "group": {"snapshot": {"title": {"title": "Flat share"}}}}},
        {"recipient": {"id": "4", "contact": {"e164": "491709999999"}}},
        {"chat": {"id": "1", "recipientId": "2"}}, {"chat": {"id": "2", "recipientId": "3"}},
        item(1, 2, 10, **words("You are so thoughtful", reactions=[{"emoji": "x", "authorId": "1"}])),
        item(1, 1, 11, **words("Thank you", quote={"targetSentTimestamp": "1772439000000", "authorId": "2"}),
             revisions=[words("Thank yuo")]),
        item(1, 2, 12, stickerMessage={"sticker": {"packId": "AA=="}}), item(1, 2, 13, remoteDeletedMessage={}),
        item(2, 4, 15, **words("look", attachments=[{"pointer": {"contentType": "image/jpeg"}}])),
        item(2, 1, 16, poll={"question": "Tea or coffee?", "options": [{"option": "Tea"}]}),
    ]  # fmt: skip
    (tmp_path / "main.jsonl").write_text("".join(json.dumps(frame) + "\n" for frame in frames))
    result = outcome(tmp_path / "main.jsonl")
    assert [each.title for each in result.conversations] == ["Marla", "Flat share"]
    assert said(result) == [("08:10", "Marla", "You are so thoughtful"), ("08:11", "Ada", "Thank you")]
    assert said(result, 1) == [("08:15", "+491709999999", "look")]
    assert result.conversations[0].messages[1].reply_to == "1772439000000"
    assert notes(result) == {
        "1 × frame 'version', read as no message",
        EDITED,
        "1 × sticker, not read",
        "1 × deleted message, of which nothing is left",
        "1 × image or other block that is not text, not read",
        "1 × words under 'poll', not read",
        "1 × item of an unknown kind, not read",
    }
