"""The states that an undo brings back: reaching them from inside, spoiling them, and trees made so that bringing them
back does harm.
"""

from __future__ import annotations

import json
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

from harness.eventlog import reader
from tests.attack.ground import SID, Ground
from tests.attack.model import Attempt, Escape, Inside, Outside
from tests.process.keeperlib import Refused

VAULT = f"vault = given['state'] + '/sessions/{SID}/vault'\n"
REACH: dict[str, str] = {
    "list the vault": "return str(os.listdir(vault))",
    "read a pack": "return read(vault + '/000001.pack')",
    "write a pack": "return write(vault + '/000001.pack')",
    "plant a pack": "return write(vault + '/999999.pack')",
    "remove the vault": "os.rename(vault, vault + '.gone'); return 'moved it'",
    "read it through the keeper's root": "return read(f\"/proc/{given['keeper']}/root{vault}/000001.pack\")",
    "read it through a link": "os.symlink(vault, 'stolen'); return read('stolen/000001.pack')",
    "hard-link a pack": "os.link(vault + '/000001.pack', 'pack'); return read('pack')",
    "mount over it": "return succeeded(libc.mount(b'none', vault.encode(), b'tmpfs', 0, None), 'mounted')",
    "ask the keeper for an undo": "return connect(socket.AF_UNIX, socket.SOCK_STREAM, given['sockets'][-2])",
    "kill what comes after the keeper": (
        "done = []\nfor pid in range(given['keeper'], given['keeper'] + 300):\n"
        "    try: os.kill(pid, 9); done.append(pid)\n    except OSError: continue\n"
        "if done: return f'killed {done}'\nraise PermissionError(1, 'none of them is there')"
    ),
}
# What is destroyed is always the same: everything of the worktree that was there. Each of these makes it hard to have
# it back.
ALL = "rm -rf precious README.md src tool;"
SPOIL: dict[str, str] = {
    "nothing else": "true",
    "use up the watches": (
        "python3 -c 'import ctypes, os; c = ctypes.CDLL(None)\nfor i in range(9000):\n    f = c.inotify_init()\n   "
        ' for n in range(60): os.makedirs(f"w/{n}", exist_ok=True); c.inotify_add_watch(f, f"w/{n}".encode(), 4095)\n  '
        "  if f < 0: break'"
    ),
    "names that a table could stumble over": (
        'python3 -c \'import os\nfor n in [b"\\n", b"+", b"-", b"w", b"g", b"\\xff\\xfe", b"a" * 255, b" ", b"\\\\",'
        ' b"%s", b"{}", b"\\x01\\x00"[:1], b".watchfloor-undo-000000000000", b"000001.pack", b"*"]:\n    open(n,'
        ' "wb").write(n); os.makedirs(b"d" + n[:200] + b"/" + n)\''
    ),
    "many names": "mkdir many; cd many; seq 30000 | xargs touch; cd ..",
    "a deep path": (
        'python3 -c \'import os\nfor i in range(60): os.mkdir("x" * 200); os.chdir("x" * 200)\nopen("leaf",'
        ' "w").write("x")\''
    ),
    "a link in place of each folder": (
        "ln -s {beside} src; ln -s {beside} precious; ln -s {beside}/secret.txt README.md"
    ),
    "a link to the vault in place of a folder": (
        "ln -s {vault} src; ln -s {vault} precious; ln -s {vault}/000001.pack tool"
    ),
    "links in a ring": "ln -s precious src; ln -s src precious; ln -s tool README.md; ln -s README.md tool",
    "other kinds of things": (
        "mkfifo README.md; mkdir tool; mkfifo tool/x; touch precious; python3 -c 'import socket;"
        ' socket.socket(1).bind("src")\''
    ),
    "folders that are closed": "mkdir -p precious/a/b src; chmod 0 precious/a/b precious/a precious src",
    "files that are closed": "echo x > README.md; chmod 0 README.md; touch src tool; chmod 4000 tool; chmod 1777 src",
    "an endless file": "truncate -s 900G README.md || truncate -s 3G README.md",
    "files of the undo's own names": (
        "for i in $(seq 200); do touch .watchfloor-undo-$i; ln -s {beside}/secret.txt .watchfloor-undo-x$i; done"
    ),
    "one file under every name": (
        "mkdir src precious; echo x > o; for n in README.md tool src/a.txt precious/1 precious/2; do ln o $n; done"
    ),
    "a daemon that goes on": (
        "setsid -f sh -c 'while :; do rm -rf precious src; date > README.md; done' > /dev/null 2>&1"
    ),
    "git and the rest": (
        "git rm -rq --cached .; rm -rf $(git rev-parse --git-path objects)/??; git commit -qm gone --allow-empty"
    ),
    "a case of another folder": "mkdir .Git .GIT; ln -s {beside} .git/hooks2; mv .git .git2",
}


def _content(root: Path) -> dict[str, tuple[int, bytes]]:
    """Kind, mode and bytes of everything in the worktree."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name != ".git"]
        for path in (Path(folder, name) for name in [*inner, *names] if name != ".git"):
            mode = path.lstat().st_mode
            read = {stat.S_IFREG: Path.read_bytes, stat.S_IFLNK: lambda p: os.fsencode(os.readlink(p))}.get(
                stat.S_IFMT(mode), lambda _: b""
            )
            found[str(path.relative_to(root))] = (mode, read(path))
    return found


def _precious(root: Path) -> None:
    (root / "precious").mkdir()
    for number in range(20):
        (root / "precious" / str(number)).write_bytes(os.urandom(100 * number))
    (root / "precious" / "link").symlink_to("../README.md")
    (root / "precious" / "closed").write_text("closed\n")
    (root / "precious" / "closed").chmod(0o400)


def _spoiled(name: str, script: str) -> Outside:
    def attempt(ground: Ground) -> None:
        root = ground.tree.root
        vault = ground.folder.vault
        _precious(root)
        before = _content(root)
        text = script.replace("{beside}", str(ground.base / "beside")).replace("{vault}", str(vault))
        call = ground.call("shell", {"script": f"{ALL} {text}\ntrue"})["call_id"]
        ground.call("exec", {"argv": ["true"]})
        started = [
            json.loads(line)["data"] for line in reader.read(ground.folder.log) if b'"type":"tool.started"' in line
        ]
        snapshot = next(data["snapshot"] for data in started if data["call_id"] == call)
        try:
            done = ground.link.call("undo", undo_id=f"u{ground.number}", call_id=call, snapshot=snapshot, by={})
        except Refused as exc:
            raise Escape(f"the state before it cannot be had back: {exc}") from exc
        after = _content(root)
        if lost := sorted(
            path
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path) and path not in _kept(done)
        ):
            raise Escape(f"{len(lost)} names are not what they were: {lost[:5]} ({done.get('refused')})")
        if stat.S_IMODE(vault.stat().st_mode) != 0o700 or any(
            stat.S_IMODE(p.lstat().st_mode) != 0o600 for p in vault.iterdir()
        ):
            raise Escape("the vault is open to others")

    return Outside(name, attempt)


def _kept(done: dict[str, object]) -> set[str]:
    """Names that an undo may leave, having said so: what they hold now is kept nowhere else."""
    refused = done.get("refused")
    said = [str(line) for line in refused] if isinstance(refused, list) else []
    return {line.partition(": ")[0] for line in said if "is not kept" in line}


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        yield from (Inside(name, VAULT + code) for name, code in REACH.items())
        yield from (_spoiled(name, script) for name, script in SPOIL.items())
        return
    for _ in range(2):
        names = dice.sample(sorted(SPOIL), 2)
        yield _spoiled(" and ".join(names), "; ".join(f"( {SPOIL[name]} ) 2> /dev/null" for name in names))
