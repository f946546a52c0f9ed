#!/usr/bin/env python3
"""A real PostgreSQL, from the programs that are installed, for tests and benchmarks; needs PostgreSQL 14 or later.

usage: serve.py [--port 0] [-- COMMAND...]
Without a command it prints the address and waits. With one it runs it with UNDERSONG_POSTGRES set, stops the server,
and ends with the command's exit code. PostgreSQL refuses root: then the server is the user ``postgres``.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER, PASSWORD = "undersong", "s3cret:w/rd@%"  # one that has to be escaped in a URL
ESCAPED = "s3cret%3Aw%2Frd%40%25"
STARTING_SECONDS = 60
ENDED = 143  # 128 + SIGTERM
FOR_TESTS = ("fsync=off", "full_page_writes=off", "max_connections=60", "shared_buffers=64MB")  # soon gone anyway


def program(name: str) -> str:
    """The newest of the installed programs of this name; raises RuntimeError where there is none."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    path = str(installed[-1]) if installed else shutil.which(name)
    if path is None:
        raise RuntimeError(f"no {name} here: install PostgreSQL, on Debian with `apt-get install postgresql`")
    return path


def owner() -> str | None:
    """Who runs the server: None for this user, as root somebody else."""
    if os.getuid():
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def initialise(folder: Path) -> None:
    """An empty cluster in a new folder below ``folder``, whose one user needs a password."""
    os.chmod(folder, 0o755)  # the server's user has to reach what is below it
    data, secret = folder / "data", folder / "password"
    data.mkdir()
    secret.write_text(PASSWORD)
    if owner():
        shutil.chown(data, owner())
        shutil.chown(secret, owner())
    command = (program("initdb"), "-D", data, "-U", USER, f"--pwfile={secret}", "--auth=scram-sha-256", "-E", "UTF8")
    options = ("--locale=C.UTF-8", "--no-sync")
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL, user=owner(), cwd="/")


def start(port: int, folder: Path, *settings: str) -> subprocess.Popen[bytes]:
    """Start a server over an initialised folder and wait until it answers; ``settings`` are those of PostgreSQL."""
    places = (f"unix_socket_directories={folder / 'data'}", "listen_addresses=127.0.0.1", f"port={port}")
    options = [part for setting in (*places, *settings) for part in ("-c", setting)]
    with (folder / "server.log").open("ab") as log:
        command = [program("postgres"), "-D", str(folder / "data"), *options]
        server = subprocess.Popen(command, stdout=log, stderr=log, user=owner(), cwd="/")
    deadline = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if answers(port):
            return server
        time.sleep(0.05)
    server.kill()
    server.wait()
    raise RuntimeError(f"PostgreSQL did not start: {(folder / 'server.log').read_text()[-2000:]}")


def answers(port: int) -> bool:
    """Whether a server takes connections."""
    command = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    return subprocess.run(command, check=False).returncode == 0


def kill(server: subprocess.Popen[bytes]) -> None:
    """End a server at once, with all open transactions."""
    server.send_signal(signal.SIGQUIT)
    server.wait()


def stop(server: subprocess.Popen[bytes]) -> None:
    """End a server in good order, whoever is connected."""
    server.send_signal(signal.SIGINT)
    server.wait()


def address_of(port: int) -> str:
    """The address of the server's database, with user and password."""
    return f"postgresql://{USER}:{ESCAPED}@127.0.0.1:{port}/postgres"


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """The address of a server with an empty database that is gone afterwards."""
    port = port or free_port()
    anywhere = "/tmp" if owner() else None  # a folder of root's may lie where the server's user does not come
    with tempfile.TemporaryDirectory(prefix="undersong-postgres-", dir=anywhere) as name:
        initialise(Path(name))
        server = start(port, Path(name), *FOR_TESTS)
        try:
            yield address_of(port)
        finally:
            stop(server)


def main() -> None:
    """Serve, with or without a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))  # so that the server is stopped with this
    with serving(options.port) as address:
        print(address, flush=True)
        if options.command:
            environment = os.environ | {"UNDERSONG_POSTGRES": address}
            sys.exit(subprocess.run(options.command, env=environment, check=False).returncode)
        sys.stdin.read()


if __name__ == "__main__":
    main()
