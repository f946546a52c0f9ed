#!/usr/bin/env python3
"""A real Neo4j 5.26 from Maven Central, without Docker, for tests and benchmarks; needs Java 17 and Maven.

usage: serve.py [--port 0] [--short-lived] [-- COMMAND...]
Without a command it prints the address and waits. With one it runs it with UNDERSONG_NEO4J set, stops the server, and
ends with the command's exit code. A short-lived server compiles less of itself.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = HERE.parent.parent / ".neo4j" / "lib"
OPENED = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED")
STOPPING_SECONDS = 60
ENDED = 143  # 128 + SIGTERM
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # a server that starts sooner and works more slowly


def fetch() -> Path:
    """The folder with the server's libraries, filled where it is empty."""
    if not any(LIBRARIES.glob("neo4j-harness-*.jar")):
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={LIBRARIES}")
        subprocess.run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *goal], check=True)
    return LIBRARIES


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(port: int, folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start a server over a data folder and wait until it answers; raises RuntimeError where it does not come up.

    ``options`` go to Java.
    """
    command = [
        "java",
        "-Xmx1500m",
        *options,
        *OPENED,
        "-cp",
        f"{fetch()}/*",
        str(HERE / "BoltServer.java"),
        str(port),
        str(folder),
    ]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("READY"):
            return server
    server.wait()
    raise RuntimeError(f"Neo4j did not start: {(folder / 'server.log').read_text()[-2000:]}")


def kill(server: subprocess.Popen[str]) -> None:
    """End a server at once, as a crash does."""
    server.kill()
    server.communicate()


def stop(server: subprocess.Popen[str]) -> None:
    """End a server in good order."""
    server.terminate()
    server.wait(STOPPING_SECONDS)
    if server.stdout is not None:
        server.stdout.close()


@contextmanager
def serving(port: int = 0, *options: str) -> Iterator[str]:
    """The address of a server with an empty database that is gone afterwards."""
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix="undersong-neo4j-") as name:
        server = start(port, Path(name), *options)
        try:
            yield f"bolt://127.0.0.1:{port}"
        finally:
            stop(server)


def main() -> None:
    """Serve, with or without a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--short-lived", action="store_true")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))  # so that the server is stopped with this
    with serving(options.port, *(SHORT_LIVED if options.short_lived else ())) as address:
        print(address, flush=True)
        if options.command:
            environment = os.environ | {"UNDERSONG_NEO4J": address}
            sys.exit(subprocess.run(options.command, env=environment, check=False).returncode)
        sys.stdin.read()


if __name__ == "__main__":
    main()
