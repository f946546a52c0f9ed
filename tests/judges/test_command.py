"""``--judge command:PROGRAM``: a real small program reads prompts and answers."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import question
from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.model_spec import spec_of, tier_specs_of
from undersong.judges.protocol import open_judge
from undersong.models import TRAITS, Evaluation

PROGRAM = """
import json, re, sys
prompt = sys.stdin.read()
asked = re.search(r"which is word number (\\d+) of this list: ([a-z, ]+)\\?", prompt)
schema = json.loads(prompt.split("# JSON Schema of the answer\\n")[1].splitlines()[0])
def value(form, name=""):
    if name == "control":
        return asked[2].split(", ")[int(asked[1]) - 1]
    if "enum" in form:
        return form["enum"][0]
    if "anyOf" in form:
        return value(form["anyOf"][0], name)
    kind = form.get("type")
    if kind == "object":
        return {key: value(part, key) for key, part in form.get("properties", {}).items()}
    return {"array": [], "integer": 0, "string": "", "boolean": False}.get(kind)
print(json.dumps(value(schema)))
"""


def spec(tmp_path: Path, program: str, *arguments: str) -> str:
    path = tmp_path / "judge program.py"
    path.write_text(program)
    return f"command:{sys.executable} '{path}'" + "".join(f" {argument}" for argument in arguments)


def ask(name: str, **limits: Any) -> Evaluation:
    (evaluation,) = open_judge(name, RunLimits(**{"attempts": 2, "backoff": 0.01} | limits)).evaluate(
        [question("You owe me.")]
    )
    return evaluation


def test_a_program_reads_the_prompt_and_its_answer_is_checked_like_any_other(tmp_path: Path) -> None:
    evaluation = ask(spec(tmp_path, PROGRAM))
    assert evaluation.state == "scored", evaluation.reason
    assert evaluation.traits is not None
    assert set(evaluation.traits) <= set(TRAITS)


def test_an_exit_code_is_a_failure_of_transport_with_the_last_line_of_standard_error(tmp_path: Path) -> None:
    counted = tmp_path / "calls"
    complain = "import sys; print('one\\nquota used up', file=sys.stderr); sys.exit(7)"
    program = f"open({str(counted)!r}, 'a').write('x'); {complain}"
    evaluation = ask(spec(tmp_path, program))
    assert evaluation.state == "failed"
    assert "exit code 7: quota used up" in (evaluation.reason or "")
    assert counted.read_text() == "xx"  # two attempts


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = (
        f"import os, time; child = os.fork(); child and open({str(note)!r}, 'w').write(str(child)); time.sleep(600)"
    )
    for timeout in (2, 8, 32):  # on a busy machine the program may not have come to its child
        evaluation = ask(spec(tmp_path, program), timeout=timeout, attempts=1)
        assert f"no whole answer within {timeout} s" in (evaluation.reason or "")
        if note.exists():
            break
    child = int(note.read_text())
    for _ in range(100):
        if not alive(child):
            return
        time.sleep(0.05)
    pytest.fail("the program's child still runs")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_nothing_passes_through_a_shell(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert ask(spec(tmp_path, PROGRAM, ";", "touch", str(mark), "$(touch", f"{mark})")).state == "scored"
    assert not mark.exists()


def test_a_program_that_is_not_there_is_named_with_a_remedy() -> None:
    with pytest.raises(JudgeError, match="cannot be started: No such file or directory; name a program"):
        ask("command:no-such-program-anywhere --json")


def test_a_program_may_read_one_tier_of_several() -> None:
    by_tier = tier_specs_of("focused=command:mine --fast x=1,deep=ollama:qwen")
    assert by_tier["focused"] == spec_of("command:mine --fast x=1")
    assert by_tier["deep"].name == "ollama:qwen"


def test_an_audit_by_a_program(undersong: Undersong, tmp_path: Path) -> None:
    Path("talk.jsonl").write_text('{"id": "m", "conversation": "c", "author": "kira", "text": "You owe me."}\n')
    ran = undersong("audit", "talk.jsonl", "--judge", spec(tmp_path, PROGRAM), "--all", "--json", "--no-chance")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["states"] == {"scored": 1}
