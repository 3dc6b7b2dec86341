"""A worktree with everything in it that can be lost, and a hundred and more ways to lose it.

Each is a script that an agent may run unasked.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

TRACKED: dict[str, bytes | str] = {
    "README.md": "# Thing\n\nSome words.\n",
    "src/a.txt": "alpha\n" * 40,
    "src/b.py": "def b():\n    return 1\n",
    "src/c/d/e.txt": "deep\n",
    "notes.txt": "keep\n",
    "data.bin": random.Random(1).randbytes(20_000),
    "tool.sh": "#!/bin/sh\necho hi\n",
    "Makefile": "all:\n\techo made > made\nclean:\n\trm -rf build node_modules\n",
    ".gitignore": "node_modules/\nbuild/\n.env\n*.bin\n!data.bin\n",
}
"""What the session's repository holds."""

PREPARE = r"""
set -e
echo one >> src/a.txt; git commit -qam one; echo two > src/two.txt; git add src/two.txt; git commit -qm two
git mv notes.txt renamed.txt; git commit -qm three; chmod 755 tool.sh; git add tool.sh; git commit -qm four
echo staged >> README.md; git add README.md; echo unstaged >> README.md; echo added > added.txt; git add added.txt
rm src/c/d/e.txt
"""
"""Commits that exist only in the session's own store, staged, unstaged, added and deleted files."""

NAMES = (
    b"plain.txt",
    b"with blank.txt",
    b"two\nlines",
    b"bad\xff\xfe\x80",
    b"-rf",
    b"'$(x)`\"*?",
    "tür/日本".encode(),
    b".hidden",
    b"\x01\x1b[31m",
    b"n" * 255,
)


def fill(root: Path) -> None:
    """Untracked and ignored things of every kind."""
    top = os.fsencode(root)
    pick = random.Random(2)
    for number, name in enumerate(NAMES):
        path = top + b"/untracked/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_text(f"number {number}\n")
    (root / ".env").write_text("SECRET=1\n")
    for package in ("left-pad", "right-pad/node_modules/inner"):
        (root / "node_modules" / package).mkdir(parents=True)
        for file in ("index.js", "package.json"):
            (root / "node_modules" / package / file).write_text(f"// {package} {file}\n")
    (root / "build").mkdir()
    (root / "build" / "out.o").write_bytes(pick.randbytes(5000))
    (root / "cache.bin").write_bytes(pick.randbytes(300_000))
    (root / "zero").write_bytes(b"")
    with open(root / "sparse", "wb") as sparse:
        sparse.truncate(1 << 20)
    (root / "empty" / "inside").mkdir(parents=True)
    for mode in (0o600, 0o755, 0o444, 0o000, 0o4755):
        (root / f"mode{mode:o}").write_text(f"{mode:o}")
        (root / f"mode{mode:o}").chmod(mode)
    for mode in (0o700, 0o500, 0o1777):
        (root / f"dir{mode:o}").mkdir()
        (root / f"dir{mode:o}" / "file").write_text("x")
        (root / f"dir{mode:o}").chmod(mode)
    for link, target in (
        ("link", "README.md"),
        ("dangling", "nowhere"),
        ("tosrc", "src"),
        ("toetc", "/etc"),
        ("loop", "loop"),
    ):
        (root / link).symlink_to(target)
    (root / "twin1").write_text("twins\n")
    os.link(root / "twin1", root / "twin2")
    os.mkfifo(root / "pipe", 0o640)
    deep = root
    for _ in range(40):
        deep = deep / ("d" * 40)
    deep.mkdir(parents=True)
    (deep / "bottom").write_text("down here\n")


NESTED = r"""
git init -q vendor/lib; cd vendor/lib; git config user.email a@b.invalid
git config user.name n; echo lib > lib.c; git add lib.c; git commit -qm lib; echo more >> lib.c
"""
"""A repository of the agent's own inside the worktree, with unsaved work."""

FILES = r"""
rm cache.bin
rm -f .env
rm -rf node_modules
rm -rf build empty
rm -rf * .[!.]* 2>/dev/null
rm -rf untracked
rm -rf src
rm -rf vendor/lib/.git
rm -f link dangling toetc loop
rm -rf tosrc/
rm -rf dddd*
rm -rf dir*
rm -- untracked/-rf
rm untracked/$'two\nlines' untracked/$'bad\xff\xfe\x80'
rm pipe
unlink twin1
rmdir empty/inside empty
find . -name '*.txt' -delete
find . -type f -exec rm -f {} +
find . -type d -empty -delete
find . -name '*.js' | xargs rm -f
find . -type l -delete
find . -mindepth 1 -not -path './.git*' -delete 2>/dev/null
ls untracked | while read -r f; do rm -f "untracked/$f"; done
for f in *; do [ -f "$f" ] && rm -f "$f"; done
make clean
make -s all clean && rm made
mv README.md cache.bin
mv src moved
mv -f untracked/plain.txt .env
mv node_modules untracked/
mv src/a.txt src/b.py
for f in src/*; do mv "$f" "$f.bak"; done
for f in untracked/*; do mv "$f" "untracked/$RANDOM$RANDOM"; done
mkdir x && mv * x/ 2>/dev/null
mv dddddddddddddddddddddddddddddddddddddddd short
mv vendor/lib lib && rm -rf lib
cp README.md cache.bin
cp -f /dev/null .env
cp -r src/. build/ && cp build/out.o README.md
install -m 644 README.md tool.sh
ln -sf README.md cache.bin
ln -sfn build tosrc
ln -f README.md zero
truncate -s 0 cache.bin
truncate -s 10 data.bin
truncate -s +1000 src/a.txt
dd if=/dev/zero of=cache.bin bs=1k count=10 2>/dev/null
dd if=/dev/urandom of=data.bin bs=100 seek=3 count=1 conv=notrunc 2>/dev/null
shred -n 1 cache.bin
shred -u -n 1 .env
sed -i s/Some/No/ README.md
sed -i.orig d src/a.txt
perl -i -pe 's/alpha/beta/' src/a.txt
perl -e 'unlink glob "*.bin"'
> README.md
: > .env
echo lost > cache.bin
echo more >> .env
cat /dev/null | tee README.md src/a.txt
echo x >| zero
exec 3> cache.bin
printf 'a\0b' > untracked/plain.txt
awk 'BEGIN{printf "" > "README.md"}'
sort -o src/b.py README.md
tar cf README.md src
tar cf t.tar src && rm -rf src && mkdir src && tar xf t.tar --strip-components=2 src/c || true
printf 'other' > mode600; tar cf t.tar mode600; echo x > mode600; chmod 644 mode600; tar xf t.tar
gzip -f cache.bin
gzip -rf src
split -b 1000 cache.bin README.md && mv README.mdaa README.md
chmod -R 000 src
chmod -R u+w,go+rwx . 2>/dev/null
chmod 000 .
chmod 777 mode600 mode4755 tool.sh
chmod -x tool.sh
chmod 755 dir500 dir1777 && rm dir500/file
chmod 0 node_modules build
chmod 700 mode0 && echo seen > mode0
chmod u-s mode4755
chmod -R a-w untracked
setfattr -n user.x -v y cache.bin 2>/dev/null; touch -d 2001-01-01 README.md && echo x >> README.md && \
touch -d 2001-01-01 README.md
rm pipe && echo file > pipe
rm pipe && mkfifo -m 600 pipe
rm README.md && mkdir README.md && echo x > README.md/file
rm -rf src && echo file > src
rm -rf src && ln -s /etc src
rm -rf build && mkfifo build
rm link && cp README.md link
rm tosrc && mkdir tosrc && touch tosrc/x
rm -rf empty && touch empty
touch made{1..300}
mkdir -p a/b/c/d && ln -s ../../.. a/b/c/d/up && rm -rf src
rm -rf src && mkdir -p src/c/d && echo alpha > src/a.txt
rm -rf untracked && mkdir untracked && echo number > untracked/plain.txt
mv src s && mv build src && mv s build
mv README.md r && mv zero README.md && mv r zero
echo x >> twin1
rm twin2 && echo other > twin2
python3 -c 'import shutil; shutil.rmtree("node_modules"); shutil.rmtree("vendor")'
python3 -c 'import os; [os.remove(f) for f in os.listdir(".") if os.path.isfile(f)]'
python3 -c 'open("cache.bin","r+b").write(b"0000")'
python3 -c 'import mmap,os; f=open("cache.bin","r+b"); m=mmap.mmap(f.fileno(),0); m[5:9]=b"mmap"; m.flush()'
python3 -c 'import mmap,os; f=open("cache.bin","r+b"); m=mmap.mmap(f.fileno(),0); m[5]^=1; m.close(); \
os.utime("cache.bin",ns=(0,0))'
python3 -c 'import os; os.rename("src","src2"); os.mkdir("src"); os.rename("src2/a.txt","src/a.txt"); \
os.remove("src2/b.py")'
python3 -c 'import os; s=os.stat("src/b.py"); open("src/b.py","w").write("def b():\n    return 2\n"); \
os.utime("src/b.py",ns=(s.st_atime_ns,s.st_mtime_ns))'
python3 -c 'import os; os.replace("cache.bin",b"untracked/bad\xff\xfe\x80")'
python3 -c 'import os; os.remove(".env"); os.mkdir(".env"); os.symlink("..", ".env/up")'
python3 -c 'import os; [open(f"many{i}","w").write(str(i)) for i in range(1500)]; \
os.system("rm -rf node_modules build")'
(cd untracked && rm -f ./*)
cd src && rm -rf ../build ../node_modules && mv ../README.md .
sh -c 'sleep 0.01; rm -rf src' & wait
sh <<'E' ; rm -rf build
rsync -a --delete empty/ src/ 2>/dev/null || rm -rf src/*
"""
"""A script each line, and what follows it behind a backslash: what happens to files."""

GIT = r"""
git reset -q --hard
git reset -q --hard HEAD~2
git reset -q --soft HEAD~1 && git checkout -q -f
git reset -q HEAD~3
git clean -qfdx
git clean -qfd
git clean -qffdx
git checkout -q -f HEAD~1
git checkout -q -- README.md
git checkout -q HEAD~3 -- .
git restore --staged --worktree README.md added.txt
git restore .
git rm -rqf --cached .
git rm -rqf src
git commit -q --amend -m changed
git commit -qam 'all at once'
git rebase -q --onto HEAD~3 HEAD~1 --autostash || git rebase --abort
git checkout -q -f . && git rebase -q --root -x 'true' || true
git add -A . 2>/dev/null; git commit -qm everything; git reset -q --hard HEAD~4
git add -f cache.bin .env && git commit -qm secrets && git rm -q --cached .env && rm .env
git reset -q --hard HEAD~3 && git reflog expire --expire=now --all && git gc -q --prune=now
git reflog expire --expire=now --all; git prune --expire=now; rm -f "$(git rev-parse --git-dir)/ORIG_HEAD"; \
git repack -qad
rm -rf "$(git rev-parse --git-dir)"/* 2>/dev/null
rm -f "$(git rev-parse --git-dir)/index"
echo 0000000000000000000000000000000000000000 > "$(git rev-parse --git-dir)/HEAD"
rm -f "$(git rev-parse --git-dir)/HEAD" && mkdir "$(git rev-parse --git-dir)/HEAD"
find "$(git rev-parse --git-dir)" -type f -exec sh -c 'echo x > "$1"' _ {} \; 2>/dev/null
rm -rf "$(git rev-parse --git-common-dir)"/objects/* 2>/dev/null; rm -f README.md
d=$(git rev-parse --git-common-dir)/objects; chmod -R u+w "$d"; \
find "$d" -type f -path '*/[0-9a-f][0-9a-f]/*' -exec truncate -s 0 {} +; rm README.md
git stash -q -u; git stash drop -q; rm -f renamed.txt
git update-index --assume-unchanged src/a.txt && echo hidden >> src/a.txt
git update-index --index-info </dev/null; git read-tree --empty
git symbolic-ref HEAD refs/heads/elsewhere
git update-ref -d HEAD 2>/dev/null; git update-ref HEAD HEAD~2
git mv -f renamed.txt README.md
git -C vendor/lib reset -q --hard
git -C vendor/lib clean -qfdx; rm -rf vendor/lib/.git/objects
git checkout -q --orphan fresh && git rm -rqf . && git commit -q --allow-empty -m empty
git worktree list >/dev/null; git apply -R <<'E' || git diff | git apply -R
git revert -n HEAD~1 || git revert --quit; rm -f src/two.txt
git merge -q --squash HEAD~2; git cherry-pick -n HEAD~3; git reset -q --hard HEAD~1
git sparse-checkout set src 2>/dev/null; rm -f README.md
"""
"""Written alike: what git does to files, index and commits."""


def scripts() -> list[str]:
    """Every script of the corpus."""
    return [line for text in (FILES, GIT) for line in text.replace(" \\\n", " ").strip("\n").split("\n")]
