"""Git as a weapon: what an agent writes into its repository, followed by everything the harness does with it outside
the sandbox.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from harness.executor import preconditions
from harness.protocol.config.sections import SandboxConfig
from harness.sandbox import fork_exec
from harness.workspace.facts.gather import gather
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git.private_gitdir import Worktree, agent_head, publish
from harness.workspace.tree import remove, worktrees
from harness.workspace.tree.diff import diff
from tests.attack.ground import Ground, git
from tests.attack.model import Attempt, Escape, Outside

STALLED_S = 90.0
_numbers = itertools.count(1)

# Settings that name a program; EVIL is one that leaves a file beside the repository wherever it may.
SETTINGS = (
    *(
        "core.fsmonitor",
        "core.hooksPath",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "core.alternateRefsCommand",
    ),
    *(
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
    ),
    *(
        "gpg.program",
        "credential.helper",
        "sequence.editor",
        "uploadpack.packObjectsHook",
        "alias.status",
        "pager.diff",
        "include.path",
        "core.worktree",
    ),
)
NESTED = (
    "git init -q sub; cd sub; echo f > f; echo '* filter=evil diff=evil' > .gitattributes; git -c filter.evil.clean="
    " add f .gitattributes; git -c filter.evil.clean= commit -qm in; git config {key} $PWD/../evil; git config"
    " filter.evil.required true; mkdir -p .git/hooks; for h in post-index-change pre-commit reference-transaction; do"
    " cp ../evil .git/hooks/$h; done; cd ..; "
)
PLACES: dict[str, str] = {
    "the private configuration": (
        "git config --file $ADMIN/config {key} $PWD/evil; git config --file $ADMIN/config.worktree {key} $PWD/evil"
    ),
    "an include": (
        "git config --file inc {key} $PWD/evil; git config --file $ADMIN/config.worktree include.path $PWD/inc"
    ),
    "a nested repository": NESTED + "echo more >> sub/f",
    "a nested repository as a link": (
        NESTED
        + "git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; git commit -qm link; echo more"
        " >> sub/f"
    ),
    "a submodule": (
        NESTED
        + "printf '[submodule \"sub\"]\\npath=sub\\nurl=./sub\\nupdate=!%s\\n' $PWD/evil > .gitmodules; "
        + "git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; git add .gitmodules; git commit"
        " -qm link; echo more >> sub/f"
    ),
    "the worktree's attributes": (
        "echo '* filter=evil diff=evil merge=evil' > .gitattributes; git config --file $ADMIN/config {key} $PWD/evil;"
        " echo x >> README.md"
    ),
}
FILES = (
    *(
        "$ADMIN/HEAD",
        "$ADMIN/index",
        "$ADMIN/config.worktree",
        "$ADMIN/commondir",
        "$ADMIN/gitdir",
        "$ADMIN/logs/HEAD",
        "$ADMIN/ORIG_HEAD",
    ),
    *(
        "$ADMIN/index.lock",
        "$ADMIN/HEAD.lock",
        "$ADMIN/MERGE_HEAD",
        "$ADMIN/locked",
        "$ADMIN/config",
        "$ADMIN/packed-refs",
        "$ADMIN/refs",
        "$ADMIN/refs/heads",
        "$ADMIN/info/exclude",
        "$OBJECTS/info/alternates",
    ),
    *(
        "$OBJECTS/pack/pack-0123456789012345678901234567890123456789.pack",
        "$OBJECTS/ab/01234567890123456789012345678901234567",
        "$OBJECTS/ab",
    ),
    *(".gitignore", ".gitattributes", ".gitmodules", "README.md", "src", "new"),
)
THINGS: dict[str, str] = {
    "a fifo": "mkfifo {f}",
    "a folder": "mkdir -p {f}",
    "a loop of links": "ln -s {f}.2 {f}; ln -s {f} {f}.2",
    "a link to a secret": "ln -s {secret} {f}",
    "a link to another branch": "ln -s $COMMON/refs/heads/main {f}",
    "a link to endless zeros": "ln -s /dev/zero {f}",
    "a link to a terminal": "ln -s /dev/stdin {f}",
    "a sparse file": "truncate -s 900G {f} || truncate -s 600M {f}",
    "nothing": "true",
    "noise": "head -c 5000 /dev/urandom > {f}",
    "zeros": "head -c 5000 /dev/zero > {f}",
    "a ref to a secret": "echo 'ref: refs/../../../../../../../../../../{secret}' > {f}",
    "a ref to main": "echo 'ref: refs/heads/main' > {f}",
}
SCRIPTS: dict[str, str] = {
    "move main": (
        "git update-ref refs/heads/main HEAD; git branch -f main HEAD; echo $(git rev-parse HEAD) >"
        " $COMMON/refs/heads/main"
    ),
    "commit on main": "git symbolic-ref HEAD refs/heads/main; echo x > x; git add x; git commit -qm x",
    "commit on another session": (
        "git symbolic-ref HEAD refs/heads/watchfloor/other; echo x > x; git add x; git commit -qm x"
    ),
    "push to itself": "echo x > x; git add x; git commit -qm x; git push . HEAD:main; git push $COMMON HEAD:main",
    "pack the refs": (
        'echo x > x; git add x; git commit -qm x; echo "$(git rev-parse HEAD) refs/heads/main" > $COMMON/packed-refs;'
        " git pack-refs --all"
    ),
    "hooks": (
        "cp evil $COMMON/hooks/post-checkout; git config core.hooksPath $PWD; cp evil reference-transaction; cp evil"
        " post-index-change"
    ),
    "the configuration": (
        "git config --local core.fsmonitor $PWD/evil; git config core.fsmonitor $PWD/evil; echo x >> $COMMON/config"
    ),
    "replace .git": (
        "rm -rf .git; mkdir .git; git init -q .; cp evil .git/hooks/post-checkout; git config core.fsmonitor $PWD/evil"
    ),
    "borrow objects": (
        "echo {beside} > $OBJECTS/info/alternates; echo /proc/self/root{beside} >> $OBJECTS/info/alternates"
    ),
    "throw objects away": "git gc --prune=now -q; rm -rf $COMMON/objects/??; find $OBJECTS -type f -delete",
    "replace an object": (
        "echo x > x; git add x; git commit -qm x; git replace HEAD~1 HEAD; git update-ref refs/replace/$(git rev-parse"
        " main) HEAD"
    ),
    "another worktree": (
        "git worktree add -f ../planted main; git worktree prune --expire=now; git worktree unlock .; git worktree"
        " remove -f -f ."
    ),
    "a remote that runs": (
        "git remote add evil 'ext::sh -c evil'; git config remote.origin.url 'ext::$PWD/evil'; git fetch evil; git push"
        " evil HEAD"
    ),
    "a tree with a way up": (
        "b=$(echo x | git hash-object -w --stdin); for n in .. . .git .GIT 'git~1' a/b; do t=$(printf \"100644 blob"
        ' $b\\t$n\\n" | git mktree); echo $(git commit-tree $t -p HEAD -m x) > $ADMIN/HEAD; done'
    ),
    "an index with a way up": (
        'b=$(echo x | git hash-object -w --stdin); printf "100644 $b 0\\t../../planted\\n100755 $b 0\\t.git/hooks/x\\n"'
        " | git update-index --index-info"
    ),
    "links out": (
        "ln -s {beside} out; ln -s {secret} key; git add -A; git commit -qm links; git checkout -q -f HEAD; rm -rf src;"
        " ln -s {beside} src"
    ),
    "a link for a folder": (
        "rm -rf src; ln -s {beside} src; git add -A; git commit -qm x; rm src; mkdir src; ln -s {secret} src/a.txt"
    ),
    "names that act": (
        "touch -- '--output={beside}/planted' '-o' '$(touch {beside}/planted2)' ':(top)x'; git add -A; git commit -qm"
        " x; touch -- '--upload-pack=evil'"
    ),
    "a deep tree": (
        "d=x; for i in $(seq 300); do d=$d/d; done; mkdir -p $d; touch $d/f; git add -A; git commit -qm deep"
    ),
    "a log link": "rm -f $ADMIN/logs/HEAD; ln -s {secret} $ADMIN/logs/HEAD; echo x > x; git add x; git commit -qm x",
    "attributes by link": (
        "ln -s {secret} .gitattributes; ln -s {secret} .gitignore; ln -s {secret} .gitmodules; echo y >> README.md"
    ),
}
EVIL = "#!/bin/sh\ntouch {beside}/ran-$$ 2>/dev/null\ncat\n"


def harness_does(tree: Worktree, sid: str) -> list[str]:
    """Every operation of the harness on a worktree; what each one said."""
    said = []
    given = {"argv": ["git", "status"]}
    deeds: tuple[Callable[[], object], ...] = (
        lambda: preconditions.head(str(tree.root), [[str(tree.private), str(tree.admin), "rw"]]),
        lambda: agent_head(tree),
        lambda: diff(tree),
        lambda: gather(tree, "exec", given, SandboxConfig()),
        lambda: publish(tree),
        lambda: remove.unpushed(tree),
        lambda: remove.remove(tree, sid),
        lambda: remove.remove(tree, sid, force_keep=True),
    )
    for deed in deeds:
        try:
            said.append(repr(deed()))
        except (WorkspaceError, OSError, ValueError) as exc:
            said.append(f"{type(exc).__name__}: {exc}")
    return said


def watched(work: Callable[[], list[str]]) -> bytes:
    """Run it in a process of its own, which a stall cannot hold up for ever. Raises Escape when it stalled."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setsid()
                out.write("\n".join(work()).encode("utf-8", "surrogateescape"))
                out.flush()
                code = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(code)
        end = time.monotonic() + STALLED_S
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > end:
                fork_exec.kill_below(child)  # git runs in sessions of its own
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise Escape(f"the harness stood still for {STALLED_S:.0f} s")
            time.sleep(0.01)
        if ended[1]:
            raise Escape("the harness met what it does not expect; its trace is above")
        out.seek(0)
        return out.read()


def _attempt(name: str, script: str) -> Outside:
    def attempt(ground: Ground) -> None:
        sid = f"git{next(_numbers):05d}"
        base = ground.base
        tree = worktrees.create(
            ground.repo,
            base / "state" / "worktrees" / sid,
            f"watchfloor/{sid}",
            base / "state" / "sessions" / sid / "git" / "private",
        )
        try:
            ground.watch.look(ground.keeper)
            (tree.root / "evil").write_text(EVIL.format(beside=base / "beside"))
            (tree.root / "evil").chmod(0o755)
            names = f"ADMIN={tree.admin} COMMON={tree.common} OBJECTS={tree.admin}/objects\n"
            text = script.replace("{beside}", str(base / "beside")).replace(
                "{secret}", str(base / "home" / ".ssh" / "id_rsa")
            )
            said = ground.output(ground.call("shell", {"script": f"{names}{text}\ntrue"}, tree))
            said += watched(lambda: harness_does(tree, sid))
            for ref in (f"refs/watchfloor/kept/{sid}", f"refs/heads/{tree.branch}"):
                with suppress(Exception):
                    said += git(ground.repo, "log", "-p", "--no-textconv", "--no-ext-diff", ref, "--").encode()
            found = ground.watch.secrets("what the harness said or kept", said) + ground.watch.look(ground.keeper)
            if found:
                raise Escape("; ".join(found))
        finally:
            for path in (base / "beside").glob("ran-*"):
                path.unlink()
            for left in (tree.root, tree.private.parent.parent, tree.admin):
                shutil.rmtree(left, ignore_errors=True)
            ground.watch.look(ground.keeper)

    return Outside(name, attempt)


def _thing(thing: str, place: str) -> Outside:
    made = THINGS[thing].replace("{f}", place)
    return _attempt(f"{thing} in place of {place}", f"rm -rf {place}; mkdir -p {Path(place).parent}; {made}")


def _setting(key: str, place: str) -> Outside:
    return _attempt(f"{key} in {place}", PLACES[place].replace("{key}", key))


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        yield from (_attempt(name, script) for name, script in SCRIPTS.items())
        for number, place in enumerate(FILES):
            yield _thing(list(THINGS)[number % len(THINGS)], place)
        for number, key in enumerate(
            (
                "core.fsmonitor",
                "filter.evil.clean",
                "filter.evil.process",
                "diff.external",
                "core.hooksPath",
                "core.alternateRefsCommand",
            )
        ):
            yield _setting(key, list(PLACES)[number % len(PLACES)])
        yield _setting("filter.evil.clean", "a nested repository as a link")
        return
    for _ in range(3):
        yield _thing(dice.choice(sorted(THINGS)), dice.choice(FILES))
        yield _setting(dice.choice(SETTINGS), dice.choice(sorted(PLACES)))
    yield _attempt(*dice.choice(sorted(SCRIPTS.items())))
