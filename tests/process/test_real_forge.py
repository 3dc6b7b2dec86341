"""What `pr` tells the person's program, held against that program itself: no forge is asked, and none is needed."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.review import forge
from app.review.forge import GH, Forge

PLACES = {GH: ("github.com/acme/shop", "api.github.com:443")}
TITLE = "--force \N{EM DASH} mend it"
BODY = "## Goal\n\n- `--web`\n"


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    """(its address, the places that somebody wanted to reach through it): it lets nobody out."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    link, _ = server.accept()
                except OSError:
                    return
                with link:
                    asked.append(link.recv(4096).decode("ascii", "replace").split(" ")[1])
                    link.sendall(b"HTTP/1.1 403 Nobody goes out\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("program", PLACES)
def test_the_real_program_takes_what_it_is_told_and_goes_to_its_forge(tmp_path: Path, program: str) -> None:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed, and tests/system_tools.sh could not install it")
    place, host = PLACES[program]
    folder = tmp_path / "empty"
    folder.mkdir()
    forge.lay_out(folder, f"https://{place}.git")
    argv = Forge(program, path, place).command(head="work", base="main", title=TITLE, body=BODY, draft=True)
    env = forge.environment({"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GH_TOKEN": "a token of nobody"})

    verb = argv[1 : next(at for at, word in enumerate(argv) if at and word.startswith("--"))]
    told = subprocess.run(
        [path, *verb, "--help"], env=env, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    known = dict(re.findall(r"^ +(?:-\w, )?(--[\w-]+) ?(\S*)  ", told, re.MULTILINE))
    at = 1 + len(verb)
    while at < len(argv):
        assert argv[at] in known, f"{program} {' '.join(verb)} knows no {argv[at]}"
        at += 2 if known[argv[at]] else 1
    assert at == len(argv), "every option that takes a value has one, and no other has"

    with proxy() as (address, asked):
        done = subprocess.run(
            argv,
            cwd=folder,
            env=env | {"HTTPS_PROXY": address},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode != 0
    assert set(asked) == {host}, f"it got as far as its forge: {done.stderr}"
    wrong = subprocess.run(
        [*argv, "--no-such"], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert "unknown flag: --no-such" in wrong.stderr, "what it does not know it says before it goes anywhere"
