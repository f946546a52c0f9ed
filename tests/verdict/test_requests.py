"""Requests of one speaker that are worth a look together, and ordinary talk that has the same words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import asked
from tests.conftest import Undersong
from undersong.models import Message, Moment
from undersong.models.verdict import REQUEST
from undersong.pipeline.session_check import checked_sessions
from undersong.verdict.detectors.requests import requests

CONTROL = "Asks where somebody is and with whom, or forbids it"
BELITTLING = "Tells the other that they are too sensitive or mistaken"
Lines = tuple[tuple[str, str], ...]

WORTH_A_LOOK: dict[str, tuple[str, set[str], Lines]] = {
    "a romance": (
        "Anselm",
        {"Asks for money", "Asks that others are kept out of it"},
        (
            ("Anselm", "I dreamt of your kitchen again. In three weeks I stand in it."),
            ("Ines", "I have bought the good coffee already"),
            ("Anselm", "They keep my passport till the bill is paid. Could you send me 900 euros, until Friday?"),
            ("Ines", "That is a lot. I would like to ask my son first"),
            ("Anselm", "Please don't tell your son. He never liked me, and it would shame me."),
        ),
    ),
    "a trade": (
        "Perrin",
        {"Asks for money", "Promises gains that nobody can promise"},
        (
            ("Perrin", "My sister's boyfriend runs it. Three percent a week, since March, like clockwork"),
            ("Olga", "sounds too good"),
            ("Perrin", "You can start with 500 dollars, that is what I did"),
        ),
    ),
    "a partner": (
        "Dario",
        {CONTROL, BELITTLING},
        (
            ("Dario", "Why is your location off"),
            ("Mila", "battery. I'm at Jo's"),
            ("Dario", "Who were you with before that. I saw you were online"),
            ("Mila", "this scares me a bit"),
            ("Dario", "You're so dramatic. Turn it back on."),
        ),
    ),
    "pictures": (
        "q_77",
        {"Asks for money", "Says what will happen otherwise"},
        (
            ("q_77", "nice family you have, I have all your contacts here"),
            ("Tom", "who is this"),
            ("q_77", "if you block me I will send the video to every one of them"),
            ("q_77", "send me 300 euros in gift cards and it is gone"),
        ),
    ),
    "pictures kept, and a loan": (
        "Rune",
        {"Asks for money", "Says what will happen otherwise"},
        (
            ("Rune", "can you lend me 600 till the 15th"),
            ("Liv", "not again, no"),
            ("Rune", "I've still got all your photos. would be a shame if your school saw them"),
        ),
    ),
    "a loan for nobody else": (
        "Gerrit",
        {"Asks for money", "Says that there is nobody else"},
        (
            ("Gerrit", "You are the only person I can trust with this"),
            ("Maud", "what is it?"),
            ("Gerrit", "They want 1,200 euros for the spare part by Friday"),
            ("Maud", "I can't"),
            ("Gerrit", "800 would already help"),
        ),
    ),
    "a life as the price": (
        "Robin",
        {
            "Says that they will harm themselves if the other does not do as they wish",
            "Asks for codes, numbers or access",
            "Says that they are the one who is wronged",
            "Announces silence until the other gives way",
            "Denies what was said or promised",
        },
        (
            ("Robin", "I can’t do this. if you leave me I’ll kill myself and you will know why"),
            ("Kim", "please don't say that, shall I come over?"),
            ("Robin", "I never said that, you’re the one who walked out on me"),
            ("Kim", "I have it here"),
            ("Robin", "I’m not talking to you until you apologise"),
            ("Robin", "and what’s the passcode of your phone"),
        ),
    ),
    "a loan, and the word that was given": (
        "Ilja",
        {"Asks for money", "Denies what was said or promised", "Promises not to do it again"},
        (
            ("Ilja", "I promise I won't ask again after this"),
            ("Noor", "you said that in May"),
            ("Ilja", "lend me 600 till friday"),
            ("Noor", "no. you promised"),
            ("Ilja", "I never promised anything. you always twist it"),
        ),
    ),
    "a place that is always seen": (
        "Vito",
        {CONTROL, "Says that they will harm themselves if the other does not do as they wish"},
        (
            ("Vito", "send me your location and leave it on"),
            ("Ada", "I'm at my mother's"),
            ("Vito", "come home or I'll hurt myself"),
        ),
    ),
    "a parcel": (
        "KURIER",
        {"Asks for money", "Asks for codes, numbers or access", "Says what will happen otherwise"},
        (
            ("KURIER", "Your parcel is held, unpaid customs 2.10. Your account will be blocked after today."),
            ("Lea", "which parcel?"),
            ("KURIER", "Please send the code that you received to this number."),
        ),
    ),
}  # fmt: skip

ORDINARY: dict[str, Lines] = {
    "a friend who worries about somebody": (
        ("Mara", "Lena wrote to me that she'll kill herself if he leaves her"),
        ("Sven", "is she safe?"),
        ("Mara", "her mother is there. she said \"if you leave I'll kill myself\" to him"),
        ("Mara", "please don't tell my brother"),
        ("Mara", "I told her to call the crisis line"),
    ),
    "somebody who is not well": (
        ("Pim", "I can't any more. some nights I think I'll kill myself"),
        ("Jet", "Pim, I'm coming. stay on the phone"),
        ("Pim", "please don't tell mum yet"),
        ("Pim", "if you leave now I'm alone all night, can you stay a bit"),
        ("Pim", "I never did anything, but today I was close"),
    ),
    "a sister": (
        ("Mara", "can you send my charger with dad? I still owe you 60 for the train"),
        ("Sven", "no hurry"),
        ("Mara", "I'll pay you back on friday, promise. it won't happen again"),
        ("Mara", "you're the one who left the coffee on the roof, I never did that"),
    ),
    "a parent and the phone of a child": (
        ("Mum", "what's your passcode again? I want to set up screen time with you tonight"),
        ("Fee", "the cat's birthday"),
        ("Mum", "and send me your location when you come out, I'm picking you up at the gate"),
        ("Fee", "ok"),
        ("Mum", "who else is there? does Ida need a lift, there's room for one"),
    ),
    "two who tease": (
        ("Ann", "if you leave before the cake I'll kill myself lol"),
        ("Bo", "haha"),
        ("Ann", "I'm not talking to you until you bring me fries"),
        ("Ann", "look what you made me do, I ate all of it"),
    ),
    "one who is left out": (
        ("Tess", "I never said that, you're the one who cancelled"),
        ("Ole", "ok ok, that was me"),
        ("Tess", "stop making me the bad guy here :) and send me 12 euros for the tickets"),
    ),
    "a surprise": (
        ("Ana", "can you send me 15 euros for the cake?"),
        ("Ben", "done"),
        ("Ana", "and don't tell your sister, it's a surprise!"),
    ),
    "flatmates": (
        ("Kim", "could you pay the bill this month, 62 euros? I'll do the next"),
        ("Lou", "ok"),
        ("Kim", "by Friday please, otherwise they charge us"),
    ),
    "a child": (
        ("Nils", "mum can you send me 20 euros for lunch"),
        ("Mum", "in a meeting"),
        ("Nils", "why aren't you answering"),
        ("Nils", "call me"),
    ),
    "a warning": (
        ("Vera", "never send money to somebody you have not met, and never give him the code"),
        ("Uli", "he says it is only a loan"),
        ("Vera", "and do talk to your daughter about it. He told you not to tell your family, that is the sign"),
    ),
    "the one who is asked": (
        ("Pawel", "do you get money from me when I sign?"),
        ("Corvin", "a little"),
        ("Pawel", "I'm not going to pay 5,000 euros for that. You said you were different"),
    ),
    "a sale": (
        ("Rita", "the bike is 140 euros, you can pay cash"),
        ("Sam", "120?"),
        ("Rita", "140, and I can hold it until tomorrow. Send me your number and I ring you"),
    ),
    "parents": (
        ("Dad", "where are you? who are you with?"),
        ("Fee", "at Jule's, back at ten"),
        ("Dad", "fine. text me when you leave"),
    ),
    "somebody who was defrauded": (
        ("Cor", "they want a tax of 15% before they release it"),
        ("Pav", "don't pay it"),
        ("Cor", "you are the one person I can trust to tell"),
    ),
    "work": (
        ("Li", "please keep this between us until the board has decided"),
        ("Mo", "sure"),
        ("Li", "we need the numbers by Monday"),
    ),
    "one who wants her own money back": (
        ("Jo", "you owe me 40 pounds for the ferry"),
        ("Wim", "I'll pay you back on the 15th"),
        ("Jo", "we need to talk about the money"),
        ("Wim", "then I am the bad one again"),
        ("Jo", "please don't say that"),
        ("Jo", "everybody would know it was a joke"),
    ),
    "a friend in need": (
        ("Tove", "could you lend me 50 euros? I'll pay you back on the 1st"),
        ("Iris", "of course, and how are you otherwise?"),
        ("Tove", "thank you! bad week, that's all"),
    ),
}  # fmt: skip


SECRECY = "please don't tell your son"
WORDINGS = {  # of a kind, and neighbours that have its words and ask for nothing of the kind; each beside SECRECY
    "Asks for money": (
        ("Send the 90 before he comes", "i need 1400 for the ticket", "transfer 650 to the man from the port",
         "I need 300 dollars today", "shipping costs 85", "the deposit is 1200, then it is yours"),
        ("starting with ticket 587 today", "89 and 90 today, both herons", "No. Pay with solving page 60.",
         "the registration is 10:30, room 24", "send 20 invitations today", "we pay attention to rule 34 now",
         "the papers: 40 of them, on your desk", "the next visa is 90 days"),
    ),
    "Asks for codes, numbers or access": (
        ("read me the code", "tell me the code that came", "forward the security code", "give me your pin",
         "what is your password", "text your bank login to me"),
        ("I may share the login flow", "can you read the code review", "send the code for the parser",
         "we need the token count", "tell them the password policy", "you need my password?",
         "give the pin a turn to the left", "share the credentials page when it is done"),
    ),
    CONTROL: (
        ("send me a photo of the room", "show me a photo of who is there", "turn your location on", "who were you with",
         "show me your phone"),
        ("I've sent you a photo of the crack", "take a photo of the engine number",
         "haha turn on location, it's a maze", "a photo of your cat please", "the photo of the menu is blurred"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", WORDINGS)
def test_a_kind_is_named_by_its_wordings_and_not_by_their_neighbours(title: str) -> None:
    wordings, neighbours = WORDINGS[title]
    assert [words for words in wordings if title not in titles(words)] == []
    assert [words for words in neighbours if titles(words)] == []


def titles(words: str) -> set[str]:
    speaker = {"conversation": "c", "author": "a", "agent": "a", "role": "participant"}
    lines = [Message(id=text, position=place, text=text, **speaker) for place, text in enumerate((words, SECRECY))]
    return {moment.title for moment in requests(lines)}


def noted(folder: Path, lines: Lines, **more: str) -> list[Moment]:
    path = folder / "talk.jsonl"
    rows = ({"conversation": "c", "agent": name, "text": text} | more for name, text in lines)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ((verdict,), _) = checked_sessions([path])
    return [each for each in verdict.moments if each.code == REQUEST]


@pytest.mark.parametrize("case", WORTH_A_LOOK)
def test_requests_together_are_quoted_word_for_word(case: str, tmp_path: Path) -> None:
    who, wanted, lines = WORTH_A_LOOK[case]
    moments = noted(tmp_path, lines)
    assert {each.agent for each in moments} == {who}
    assert {each.title for each in moments} >= wanted
    for each in moments:
        text = lines[each.position][1]
        assert all(text[quote.start : quote.end] == quote.text for quote in each.quotes)
    everybody, named = asked.noted({"c": [{"author": name, "text": text} for name, text in lines]})  # the bench agrees
    assert named == {("c", who)} < everybody


@pytest.mark.parametrize("case", ORDINARY)
def test_ordinary_talk_has_the_words_but_not_together(case: str, tmp_path: Path) -> None:
    assert noted(tmp_path, ORDINARY[case]) == []


def test_a_user_may_ask_an_assistant_for_anything(tmp_path: Path) -> None:
    _, _, lines = WORTH_A_LOOK["a romance"]
    rows = [
        {"conversation": "c", "role": "assistant" if who == "Ines" else "user", "text": text} for who, text in lines
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ((verdict,), _) = checked_sessions([path])
    assert [each for each in verdict.moments if each.code == REQUEST] == []


def test_the_first_screen_names_who_asks_and_what(undersong: Undersong) -> None:
    lines = (*WORTH_A_LOOK["a romance"][2], ("Anselm", "No point cooking for one. Good night"))
    text = "".join(f"{who}: {words}\n" for who, words in lines)
    Path("chat.txt").write_text(text, encoding="utf-8")
    said = " ".join(undersong("audit", "chat.txt", "--no-store").out.split())
    assert "Anselm asks for money (turn 3), presses for time (turn 3)" in said
    assert "since no LLM judge read it: 1. Anselm asks" in said
    assert "Could you send me 900 euros, until Friday?” – Anselm: asks for money" in said
    assert "What is in the messages of Anselm, by their words" in said
    assert "- Makes the other pay with guilt for what they do without them: at least once, turn 6 “No point" in said
    assert undersong("verify", "undersong-report", "chat.txt").code == 0
    lead = json.loads(Path("undersong-report/leads.jsonl").read_text().partition("\n")[0])
    assert (lead["rank"], lead["kind"], lead["agent"], lead["above_cut"]) == (1, "message", "chat/Anselm", True)
    assert lead["reason"] == (
        "Anselm asks for money (turn 3), presses for time (turn 3) and asks that others are kept out of it (turn 5)."
    )
    assert lead["quotes"][0]["text"] == "Could you send me 900 euros, until Friday?"
    assert [(kind["kind"], kind["message_ids"]) for kind in lead["kinds"]] == [
        ("cuts_off", ["chat:4"]), ("guilt", ["chat:5"]), ("secrecy", ["chat:4"]),
    ]  # fmt: skip
    page = Path("undersong-report/report.html").read_text(encoding="utf-8")
    assert all(f"<mark>{kind['quotes'][0]['text']}</mark>" in page for kind in lead["kinds"] if kind["kind"] == "guilt")
    listed = undersong("leads", "undersong-report").out
    assert listed.startswith(f"1. Anselm in chat\n   {lead['reason']}\n   “{lead['quotes'][0]['text']}”")
    assert "A model on this machine (Ollama, llama.cpp) sends nothing: " in said
    assert "--judge ollama:MODEL" in said


def test_explain_says_why_a_request_is_noted_and_agent_takes_the_name_that_is_shown(undersong: Undersong) -> None:
    lines = WORTH_A_LOOK["a romance"][2]
    Path("chat.txt").write_text("".join(f"{who}: {words}\n" for who, words in lines), encoding="utf-8")
    undersong("audit", "chat.txt")
    markdown = Path("undersong-report/forensic_audit_report.md").read_text(encoding="utf-8")
    explained = undersong("explain", "3").out
    assert "request: Asks for money: “Could you send me 900 euros, until Friday?”" in explained
    assert "rare together. In this conversation the speaker asks for money" in explained
    assert "request:" not in undersong("explain", "2").out
    assert undersong("agent", "anselm", "--store", "undersong-report").out.startswith("chat/Anselm: 3 messages")
    assert ".." not in markdown.replace("...", "")
    assert "overeignty" not in markdown.split("## This run")[0]


def test_what_is_told_of_a_caller_is_no_request(tmp_path: Path) -> None:
    lines = (
        ("Fran", "a man rang, he said he is from the bank and my account is blocked"),
        ("Ruth", "no!"),
        ("Fran", 'he goes "read me the code you got" and "don\'t tell anyone in the branch"'),
        ("Fran", "he wanted 900 euros moved to a safe place, I hung up"),
    )
    assert noted(tmp_path, lines) == []
