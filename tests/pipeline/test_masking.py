"""What --redact masks of written secrets, and what it leaves of innocent numbers; `bench/redaction.py` times it."""

from __future__ import annotations

from pathlib import Path

import pytest

from undersong.pipeline.masking import Masker

INNOCENT = Path(__file__).with_name("innocent_numbers.txt").read_text().splitlines()
NAMES = ("Anna Schmidt", "Jean-Luc Moreau", "Maria del Carmen Ruiz")
WIDE = str.maketrans({chr(0x21 + n): chr(0xFF01 + n) for n in range(94)})
# a text, and what of it must be gone; every number is invented or one that its standard gives as an example
SAMPLES: tuple[tuple[str, str], ...] = (
    # cards
    ("my card is 4111 1111 1111 1111, take it", "4111 1111 1111 1111"),
    ("4111111111111111", "4111111111111111"),
    ("visa 4012-8888-8888-1881 until 12/29", "4012-8888-8888-1881"),
    ("mastercard 5555555555554444", "5555555555554444"),
    ("2223 0031 2200 3222 is new", "2223 0031 2200 3222"),
    ("amex 3782 822463 10005", "3782 822463 10005"),
    ("it was 6011 1111 1111 1117.", "6011 1111 1111 1117"),
    ("3530 1113 3330 0000 from Japan", "3530 1113 3330 0000"),
    ("the CVV is 737", "737"),
    # IBAN
    ("DE89370400440532013000", "DE89370400440532013000"),
    ("send it to DE89 3704 0044 0532 0130 00 today", "DE89 3704 0044 0532 0130 00"),
    ("GB29NWBK60161331926819", "GB29NWBK60161331926819"),
    ("iban: fr14 2004 1010 0505 0001 3m02 606", "fr14 2004 1010 0505 0001 3m02 606"),
    ("NL91 ABNA 0417 1643 00 is hers", "NL91 ABNA 0417 1643 00"),
    ("to BE68 5390 0754 7034 please", "BE68 5390 0754 7034"),
    ("CH93-0076-2011-6238-5295-7", "CH93-0076-2011-6238-5295-7"),
    # SSN
    ("SSN: 212-09-6453", "212-09-6453"),
    ("social security number 212 09 6453", "212 09 6453"),
    ("ssn 212096453", "212096453"),
    ("mine is 457-55-5462, honestly", "457-55-5462"),
    # IP
    ("he wrote from 84.113.20.7 that night", "84.113.20.7"),
    ("Failed password for root from 203.0.113.45 port 22", "203.0.113.45"),
    ("the box is 192.168.178.23", "192.168.178.23"),
    ("http://93.184.216.34/login", "93.184.216.34"),
    ("2001:0db8:85a3:0000:0000:8a2e:0370:7334 is ours", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    ("ping 2001:db8::8a2e:370:7334", "2001:db8::8a2e:370:7334"),
    # labelled secrets
    ("password: hunter2", "hunter2"),
    ("DB_PASSWORD=s3cr3t!pw", "s3cr3t!pw"),
    ("my password is Sunflower77", "Sunflower77"),
    ('{"api_key": "9f8e7d6c5b4a"}', "9f8e7d6c5b4a"),
    ("export API_TOKEN=abc123def456ghi", "abc123def456ghi"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG"),
    ("client secret: 7tQ~kd83mmA", "7tQ~kd83mmA"),
    ("the PIN is 4821", "4821"),
    ("your verification code is 481920", "481920"),
    ("passphrase = correct-horse-battery", "correct-horse-battery"),
    ("pwd:Tr0ub4dor&3", "Tr0ub4dor&3"),
    # basic auth and keys of makers
    ("Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l", "YWxhZGRpbjpvcGVuc2VzYW1l"),
    ("https://kira:s3cret@example.org/repo.git", "s3cret"),
    ("redis://:pa55w0rd@cache:6379/0", "pa55w0rd"),
    ("Bearer 2YotnFZFEjr1zCsicMWpAA99", "2YotnFZFEjr1zCsicMWpAA99"),
    ("sk-proj-abcdEFGH1234ijklMNOP5678", "abcdEFGH1234ijklMNOP5678"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8tAmbihY", "ngeVfQFYQlKU0ufo8x5d1A"),
    ("bot 110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawx", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawx"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "eyJzdWIiOiIxMjM0In0"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq4\n-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA7bq4"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF0fak\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBF0fak"),
    # mail and phones
    ("mo.berg [at] example [dot] org", "mo.berg"),
    ("mo.berg(at)example.org", "mo.berg"),
    ("+49 (0)30 123456-78", "123456"),
    ("call 0170/1234567 after six", "0170/1234567"),
    ("(415) 555-0134", "555-0134"),
    ("1-800-555-0134 is free", "800-555-0134"),
    ("415.555.0134", "415.555.0134"),
    ("06 12 34 56 78", "06 12 34 56 78"),
    ("07700 900123 is mine", "07700 900123"),
    ("text me at 4155550134", "4155550134"),
    ("(11) 91234-5678, Sao Paulo", "91234-5678"),
    ("138 0013 8000", "138 0013 8000"),
    # what looks the same
    ("4111 1111 1111 1111".translate(WIDE), "4111 1111 1111 1111".translate(WIDE)),
    ("41\u200b11 1111\u200d 1111 1111", "1111 1111"),
    ("+49\u00a0170\u202f1234567", "1234567"),
    ("mo.b\u00aderg@exam\u200bple.org", "erg@"),
    ("DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000", "0532"),
    ("415\u2011555\u20110134", "0134"),
    ("password\uff1a hunter2", "hunter2"),
    # names
    ("Anna Schmidt wrote", "Schmidt"),
    ("Schmidt, Anna was here", "Schmidt"),
    ("SCHMIDT ANNA", "SCHMIDT"),
    ("schmidt.anna", "schmidt"),
    ("An\u200bna Schm\u00adidt", "idt"),
    ("Moreau, Jean-Luc", "Moreau"),
    ("Ruiz, Maria del Carmen", "Ruiz"),
)
LEAST = len(SAMPLES) - 4  # 58 of 62 are wanted


def leftover() -> list[str]:
    """The samples of which the secret, or a part of it, can still be read."""
    return [text for text, secret in SAMPLES if secret in Masker(NAMES).text(text).text]


def test_written_secrets_are_masked() -> None:
    assert len(SAMPLES) >= 62
    assert len(leftover()) <= len(SAMPLES) - LEAST, leftover()


def masked_innocents() -> list[str]:
    """The innocent lines of which something is masked."""
    return [line for line in INNOCENT if Masker(NAMES).text(line).spans]


def test_innocent_numbers_stay() -> None:
    assert len(INNOCENT) == 300
    assert len(masked_innocents()) <= 0.02 * len(INNOCENT), masked_innocents()


HOSTILE = (
    "1", "1 ", "0 ", "a", "a.", "a@", "@a.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n" + "A" * 60,
    "-", "4111 1111 1111 111", "DE89 ", "de", "a1", "1.", "a:", "::", "1:", "http://a:", "password=", "password is ",
    "Basic ", "bearer ", "eyJ", "eyJaaaaaaaa.", "sk-", "sk-a-", "+4 ", "(0", "call ", "call 1", "Anna ", "Anna\n ",
    "Schmidt, ", "\u200b", "1\u200b", "\uff11", " at ", "[at]", "a [at] a", "Private-Lines: 1 ", "pin ", "-p",
)  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
def test_places_hold_in_hostile_texts(part: str) -> None:
    text = (part * 3000)[:3000]
    masked = Masker(NAMES).text(text)
    assert masked.place(len(text)) == len(masked.text)
    assert all(text[span.start : span.end] for span in masked.spans)


def test_one_secret_has_one_number_however_it_is_written() -> None:
    masker = Masker(NAMES)
    text = masker.text("4111 1111 1111 1111, 4111111111111111; Anna Schmidt, Schmidt Anna; ANNA.SCHMIDT").text
    assert text == "[CARD-1], [CARD-1]; [NAME-1], [NAME-1]; [NAME-1]"


def test_places_are_those_of_the_text_as_it_is_written() -> None:
    text = "so \u200b41\u200b11 1111 1111 1111\u200b, and a@x.org \uff01"
    masked = Masker().text(text)
    assert masked.text == "so \u200b[CARD-1]\u200b, and [EMAIL-1] \uff01"
    assert masked.text[masked.place(text.index("and")) :].startswith("and [EMAIL-1]")
    assert masked.after(text.index("@")) == masked.text.index("[EMAIL-1]") + len("[EMAIL-1]")
