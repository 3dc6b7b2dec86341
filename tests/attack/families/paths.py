"""Reading and writing what lies outside the worktree, by every way of naming it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Escape, Inside, Outside

# Each way leaves in `path` a name that would lead to the target `t` on the host; `w` is a fresh name in the worktree.
WAYS = {
    "its own name": "path = t",
    "two slashes": "path = '//' + t.strip('/').replace('/', '//./')",
    "many steps up": "path = '../' * 40 + t[1:]",
    "root of itself": "path = '/proc/self/root' + t",
    "root of a thread": "path = '/proc/thread-self/root' + t",
    "root of the first process": "path = '/proc/1/root' + t",
    "cwd of the first process": "path = '/proc/1/cwd/' + '../' * 40 + t[1:]",
    "root of the parent": "path = f'/proc/{os.getppid()}/root' + t",
    "root of a host process": "path = f'/proc/{given[\"victim\"]}/root' + t",
    "root of the keeper": "path = f'/proc/{given[\"keeper\"]}/root' + t",
    "a descriptor of its folder": "d = os.open('.', os.O_PATH); path = f'/proc/self/fd/{d}/' + '../' * 40 + t[1:]",
    "a descriptor of the root": "d = os.open('/', os.O_PATH); path = f'/dev/fd/{d}' + t",
    "a link": "os.symlink(t, w); path = w",
    "a link to the folder": "os.symlink(os.path.dirname(t), w); path = w + '/' + os.path.basename(t)",
    "a link to the root of process 1": "os.symlink('/proc/1/root', w); path = w + t",
    "a chain of links": (
        "os.symlink(t, w + '0'); [os.symlink(w + str(i), w + str(i + 1)) for i in range(9)]; path = w + '9'"
    ),
    "a relative link": "os.symlink('../' * 40 + t[1:], w); path = w",
    "a hard link": "os.link(t, w); path = w",
    "a hard link through a link": "os.symlink(t, w + 'l'); os.link(w + 'l', w, follow_symlinks=True); path = w",
    "a rename": "os.rename(t, w); path = w",
    "through git's folder": "path = given['admin'] + '/' + os.path.relpath(t, given['admin'])",
    "through the object store": (
        "path = given['repo'] + '/.git/objects/' + os.path.relpath(t, given['repo'] + '/.git/objects')"
    ),
    "a mapped file": "path = '/proc/self/map_files/../../../..' + t",
    "a mount's leftovers": "path = '/oldroot' + t",
    "bwrap's new root": "path = '/newroot' + t",
}
DEEDS = {
    "read": "return read(path)",
    "list": "return os.write(1, repr(os.listdir(os.path.dirname(path))).encode())",
    "append": "return write(path)",
    "replace": "return write(path, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC)",
    "open for both": "return write(path, flags=os.O_RDWR)",
    "open by path": "d = os.open(path, os.O_PATH); return write(f'/proc/self/fd/{d}', flags=os.O_WRONLY)",
    "truncate": "os.truncate(path, 0)",
    "remove": "os.unlink(path)",
    "chmod": "os.chmod(path, 0o666)",
    "chown": "os.chown(path, 65534, 65534)",
    "touch": "os.utime(path, (1, 1))",
    "set an attribute": "os.setxattr(path, 'user.attack', b'1')",
    "rename over it": "open(w + 'n', 'w').write('x'); os.rename(w + 'n', path)",
    "link over it": "open(w + 'n', 'w').write('x'); os.link(w + 'n', path + '.planted')",
    "exchange": "open(w + 'n', 'w').write('x'); syscall((316, 276)[MACHINE], -100, w + 'n', -100, path, 2)",
    "make a folder beside": "os.mkdir(os.path.dirname(path) + '/planted')",
    "make a link beside": "os.symlink('/etc/passwd', os.path.dirname(path) + '/planted-link')",
    "make a fifo beside": "os.mkfifo(os.path.dirname(path) + '/planted-fifo')",
    "an unnamed file beside": (
        "d = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_WRONLY); "
        "os.link(f'/proc/self/fd/{d}', os.path.dirname(path) + '/planted-tmp', follow_symlinks=True)"
    ),
    "run it": "return run(path)",
    "map it": "import mmap; d = os.open(path, os.O_RDWR); m = mmap.mmap(d, 1); m[0:1] = b'X'",
    "send it": (
        "d = os.open(path, os.O_RDONLY); e = os.open(w + 'out', os.O_WRONLY | os.O_CREAT); os.sendfile(e, d, 0, 4096)"
    ),
}
NAMES = (
    "{t}",
    "../{rel}",
    "{rel}",
    "./{rel}",
    "~/.ssh/id_rsa",
    "/proc/self/root{t}",
    "/proc/1/root{t}",
    "link",
    "folder-link/{name}",
    "chain9",
    "src/../../{rel}",
    "{t}/.",
    "/dev/fd/0/../../../..{t}",
    ".git",
    ".git/config",
    "src/.git/../../.git",
)


def _inside(way: str, deed: str, target: int, mark: str) -> Inside:
    head = f"t = given['targets'][{target}]; w = given['worktree'] + '/{mark}'"
    return Inside(f"{deed} target {target} by {way}", f"{head}\n{WAYS[way]}\n{DEEDS[deed]}", claim=False)


def _tool(tool: str, name: str, target: int) -> Outside:
    """A file tool of the harness with a path that leads out."""

    def attempt(ground: Ground) -> None:
        root = ground.tree.root
        goal = ground.targets[target]
        for link, where in (("link", goal), ("folder-link", goal.parent), ("chain0", goal)):
            (root / link).unlink(missing_ok=True)
            (root / link).symlink_to(where)
        for number in range(9):
            (root / f"chain{number + 1}").unlink(missing_ok=True)
            (root / f"chain{number + 1}").symlink_to(f"chain{number}")
        rel = f"{'../' * (len(root.parts) - 1)}{str(goal)[1:]}"
        given = {"path": name.format(t=goal, rel=rel, name=goal.name)}
        given |= {
            "write_file": {"content": "from inside\n"},
            "edit_file": {"old": "canary", "new": "edited"},
            "search": {"pattern": "canary-"},
        }.get(tool, {})
        action = ground.action(tool, given)
        if action["effects"] or action.get("refused"):
            return  # it would be asked about or denied, so nobody runs it unasked
        call = ground.allow(action)
        ground.link.call("execute", call_id=call)
        output = ground.output(ground.ended(call))
        if found := ground.watch.secrets(f"the output of {tool}", output):
            raise Escape("; ".join(found))

    return Outside(f"{tool} of {name} for target {target}", attempt)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    count = len(ground.targets)
    if dice is None:
        for number, (way, deed) in enumerate(product(WAYS, ("read", "append", "remove", "rename over it"))):
            yield _inside(way, deed, number % count, f"l{number}")
        for number, deed in enumerate(DEEDS, 1):
            yield _inside("its own name", deed, number % count, f"d{number}")
        for number, (tool, name) in enumerate(product(("read_file", "write_file"), NAMES)):
            yield _tool(tool, name, number % count)
        return
    for number in range(40):
        yield _inside(dice.choice(sorted(WAYS)), dice.choice(sorted(DEEDS)), dice.randrange(count), f"r{number}")
    for _ in range(3):
        yield _tool(
            dice.choice(("read_file", "write_file", "edit_file", "list_files", "search")),
            dice.choice(NAMES),
            dice.randrange(count),
        )
