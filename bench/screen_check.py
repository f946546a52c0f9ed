"""What every first screen must have, over 50 runs: ``python -m bench.screen_check [--data DIR] [--runs N]``.

The runs read the samples, the demo, conversations of bench/talks and bench/chats, and, where DIR (or UNDERSONG_DATA)
holds them, the sets that bench/first_screens reads. A screen must say what was read, with counts; what was found, each
with a quote, or that nothing was; what was not looked for; and which command comes next. No line is wider than 120
columns, no word is ours alone, no number is without its unit. Exit code 1 where a screen lacks any of it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from bench.first_screens import SETS, reports, written
from undersong.cli.summary import print_summary, summary
from undersong.pipeline.audit import audit

ROOT = Path(__file__).parents[1]
OURS = ("samples/invoice_session.json", "samples/memory_thread.json", "demo/network.jsonl",
        *(f"demo/conversations/{name}" for name in ("choir.txt", "csv_import.json", "flat_share.txt")))  # fmt: skip
OF_BENCH = {"bench/talks/dev/messages.jsonl": 14, "bench/chats/messages.jsonl": 6}  # conversations, each a run
OF_DATA = {"pressure": 5, "companion": 5, "posts": 4, "people": 3, "ordinary": 3, "coding": 2, "failing": 2}
WIDEST = 120
PRIVATE = re.compile(  # words of the program, or of ours, that nobody outside knows
    r"(?i)\b(?:told|took points|seed|purse|desk|smoking guns?|n-?grams?|null bands?|tiers?|width|psychogenic|"
    r"sovereignty|context vector|upgrades?|hash|manifest|heads?|triage)\b"
)
QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"", re.DOTALL)
FILE = re.compile(  # the name of a file, before what became of it
    r"(?m)^  \S.*?: (?=\d|not read|no lead|nothing stands out)"
)
NUMBER = re.compile(r"(?<![\w.$#-])\d[\d,.]*\d|(?<![\w.$#-])\d")
TITLED = re.compile(
    r"Nothing stands out|\d+ turns? noted, none of which stands out|\d+ moments? to look at; |"
    r"\d+ findings?(?: and \d+ leads?)? to look at(?:, the first \d+)?:"
)


def faults(screen: str) -> list[str]:
    """What a first screen lacks, in words; nothing where it lacks nothing."""
    text = " ".join(screen.split())
    lacking = []
    if not re.search(r"Looked at [\d,]+ messages? in [\d,]+ (?:conversation|session)s?\b", text):
        lacking.append("does not say how much was read")
    if not TITLED.match(text):
        lacking.append("does not begin with what was found")
    if not re.search(r"Not looked (?:for|at): |Nothing was left out\.", text):
        lacking.append("does not say what was not looked for")
    points = re.split(r"\n\n(?=\d\. )", screen.split("\n\nLooked at")[0])[1:]
    lacking += [f"point {n} has no quote" for n, point in enumerate(points, 1) if "“" not in point]
    lacking += [f"point {n} has no command" for n, point in enumerate(points, 1) if "undersong explain " not in point]
    if not re.search(r"undersong (?:audit|explain) ", text):
        lacking.append("names no next command")
    lacking += [f"wider than {WIDEST}: {line}" for line in screen.splitlines()
                if len(line) > WIDEST and " " in line.strip()]  # fmt: skip
    ours = QUOTED.sub("“”", "\n".join(line for line in screen.splitlines() if not _is_command(line)))
    ours = FILE.sub("", ours)
    lacking += [f"a word of ours: {word[0]}" for word in PRIVATE.finditer(ours)]
    return lacking + [f"a number without its unit: {words}" for words in bare_numbers(ours)]


def _is_command(line: str) -> bool:
    return re.match(r"\s+\S*undersong |(?:report|claims) {4}", line) is not None or line.endswith(" \\")


def bare_numbers(text: str) -> Iterator[str]:
    """Numbers that no noun follows and that are no turn, price, date or place in a list, with the words before them."""
    flat = re.sub(r"(?m)^\d+\. ", "", text)
    flat = re.sub(
        r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?:, \d+)?)?|\+\d[\d ]+|turns? \d[\d, ]*(?:and \d+)?|from \d+ to \d+",
        "",
        " ".join(flat.split()),
    )
    for number in NUMBER.finditer(flat):
        after = flat[number.end() :]
        if not re.match(r"(?: of [\d,]+)?(?:%| %| [a-z×])", after):
            yield flat[max(0, number.start() - 40) : number.end() + 10]


def screen_of(path: Path) -> str:
    """What ``undersong audit PATH`` prints, without a judge that costs anything."""
    case, _ = audit([path])
    facts = summary(case, Path("undersong-report"), "0" * 64, paths=[path.name], explain="undersong explain")
    with redirect_stdout(io.StringIO()) as printed:
        print_summary(facts, as_json=False)
    return printed.getvalue()


def paths(data: Path | None, folder: Path) -> Iterator[Path]:
    """What the runs read, 50 where the sets are at hand."""
    yield from (ROOT / name for name in OURS)
    for file, count in OF_BENCH.items():
        rows = [json.loads(line) for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
        talks = groupby(rows, key=lambda row: row["conversation"])
        for number, (_, talk) in enumerate(islice(talks, count), 1):
            yield _lines(folder / f"{Path(file).parts[1]}-{number}.jsonl", list(talk))
    for kind, count in OF_DATA.items() if data is not None else ():
        if (data / SETS[kind][0]).exists():
            yield from (written(talks, folder, name) for name, talks in islice(reports(data, kind, 1), count))


def _lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def main() -> None:
    """Every run, and what its screen lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"), help="the folder with the sets")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--show", action="store_true", help="print the screens that lack something")
    options = parser.parse_args()
    runs = lacking = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in islice(paths(options.data, Path(folder)), options.runs):
            runs += 1
            screen = screen_of(path)
            bad = faults(screen)
            lacking += bool(bad)
            for fault in bad:
                print(f"{path.name}: {fault}")
            if bad and options.show:
                print(screen)
    print(f"{runs} screens, {lacking} of them lack something")
    sys.exit(1 if lacking else 0)


if __name__ == "__main__":
    main()
