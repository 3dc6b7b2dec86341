"""Hundreds of scripts as agents run them all day in a worktree that holds untracked files.

Nobody may be asked about any of them.
"""

from __future__ import annotations

from tests.process import everyday_more

UNTRACKED: dict[str, str] = {
    "README.new": "draft\n",
    "out/a": "1\n",
    "out/b": "2\n",
    "build/x.o": "o\n",
    "script.py": "print('hi')\n",
    ".env": "A=1\n",
    "node_modules/p/index.js": "//\n",
    "with blank.txt": "x\n",
    "log.txt": "one\ntwo\n",
    "t": "t\n",
}

SCRIPTS = r"""
[ -f README.md ]
[ -d src ] && echo yes
[ -e out/a ] || echo no
[ "$HOME" ]
[ -n "$PATH" ] && [ -z "$NOPE" ]
[ 1 -lt 2 ]
[[ -f README.md && ! -d README.md ]]
test -s log.txt
test -x script.py || chmod +x script.py
if [ -f Makefile ]; then make -n; fi
if [ ! -d build ]; then mkdir build; fi
[ "$(wc -l < log.txt)" -eq 2 ] && echo two
[ README.md -nt log.txt ] || true
(( 1 + 1 )) && echo math
sed -n 1,5p README.md
sed -e s/a/b/ README.md
sed -e 's/x/y/' -e 's/y/z/' README.md > out/c
sed -i s/Thing/Other/ README.md
sed -i.bak s/a/b/ src/a.txt && rm src/a.txt.bak
sed -i -e '/^$/d' log.txt
sed 's/one/1/' log.txt | tee out/a
make | tee log.txt
make -s all 2>&1 | tee out/make.log | tail -1
make clean all
make -j2 -C . all
"$PY" -V
PY=python3; "$PY" -V
"${PY:-python3}" -c 'print(1)'
$(command -v python3) -V
python3 -V
python3 script.py
python3 -c 'import sys; print(sys.version)'
python3 - <<'E'
python3 -m json.tool <<< '{"a": 1}'
python3 -m compileall -q src
python3 -m py_compile script.py
python3 -m unittest discover -s src
python3 -m venv --without-pip out/venv
python3 -m venv --without-pip .venv && .venv/bin/pip install -q --no-index -e . || true
.venv/bin/pip list --format=freeze
.venv/bin/python -m pytest -q -x
pip install --no-index --find-links wheels thing
npm test -- --watch=false
npm ci --offline
npm run build && rm -rf dist
npx --no-install eslint src
cargo build --offline
cargo test --offline -- --nocapture
cargo fmt && cargo clippy --offline -- -D warnings
cargo clean
go build ./... && go test ./...
rm -rf build dist *.egg-info .pytest_cache
rm -rf target node_modules/.cache
mkdir -p build && cd build && cmake .. && make
git restore --staged . && git checkout -- README.md
git reset --hard HEAD && git clean -fdx
git rebase -i HEAD~1 || git rebase --abort
git rm -r --cached node_modules || true
mv src lib && git add -A && git commit -q -m 'Move it'
find . -name '*.pyc' -delete
truncate -s 0 log.txt
tar czf out/all.tgz src && rm -rf src
python3 -c "open('out/a','w').write('x')"
python3 -c 'import os; os.replace("out/a", "out/b")'
find . -name '*.py' | xargs wc -l
find . -name '*.py' -print0 | xargs -0 wc -l
find src -type f -exec head -1 {} \;
find . -type f -newer README.md -not -path './.git/*'
find build -name '*.o' -delete
find . -name __pycache__ -prune -exec rm -rf {} +
find . -maxdepth 2 -empty
ls -la
ls *.md | wc -l
cat README.md log.txt
cat src/a.txt | head -3
head -c 10 README.md; tail -n 2 log.txt
wc -l src/*
grep -rn alpha src
grep -c one log.txt || true
grep -l alpha -r . | xargs sed -i s/alpha/omega/
git grep -n alpha
rg alpha || grep alpha src/a.txt
awk '{print $1}' log.txt
awk -F: 'NR==1{print > "out/first"}' log.txt
awk 'END{print NR}' log.txt README.md
cut -c1-3 log.txt | sort -u
sort -o log.txt log.txt
sort log.txt | uniq -c | sort -rn
tr a-z A-Z < log.txt > out/upper
diff -u README.md README.new
diff <(sort log.txt) <(sort README.md)
patch -p1 --dry-run < /dev/null
comm -12 <(sort log.txt) <(sort README.md)
xargs -n1 echo < log.txt
git status
git status --porcelain
git add -A
git add . && git commit -qm work
git add README.md && git commit -m 'a message; rm -rf /'
git commit -q --allow-empty -m empty
git commit -qam "fix: it's done"
git stash
git stash -u && git stash pop
git stash list
git diff
git diff --stat HEAD
git diff --cached --name-only
git log --oneline -5
git log -p -1 -- README.md
git show HEAD:README.md
git checkout -q -b topic
git checkout -- README.md
git checkout HEAD -- src
git switch -c another
git branch -a
git merge topic
git merge --no-ff -q HEAD
git rebase HEAD~0
git rebase -i --root
git reset HEAD README.md
git reset --hard
git clean -fdx
git clean -n
git rm -q --cached src/a.txt
git mv src/a.txt src/b.txt
git cherry-pick HEAD
git revert --no-edit HEAD
git tag v1
git blame README.md
git config user.name
git rev-parse --show-toplevel
git ls-files | head
git worktree list
git bisect log
git submodule status
git restore README.md
git describe --always
git reflog
tar cf out/src.tar src
tar czf out/src.tgz src README.md
tar xf out/src.tar -C out
tar tf out/src.tar
zip -r out/x.zip src || true
gzip -k log.txt
gunzip -f log.txt.gz
rm out/a
rm -f build/x.o
rm -rf build
rm -rf build/ out/ node_modules/
rm -rf ./node_modules && mkdir node_modules
rm "with blank.txt"
rm -- t
rmdir out/empty 2>/dev/null || true
mv t t2
mv out/a out/b
mv README.new README.md
mv src source && mv source src
cp README.md README.new
cp -r src out/src
cp -f log.txt t
cp /etc/hosts out/hosts
install -D -m 755 script.py out/bin/script
ln -s ../src out/link
ln -sf README.md t
touch log.txt new.txt
touch -d yesterday log.txt
mkdir -p a/b/c
chmod +x script.py
chmod -R u+rwX .
chmod 600 .env
truncate -s 0 log.txt
dd if=/dev/zero of=out/zeros bs=1k count=1
echo hi > t
echo hi >> log.txt
echo hi | tee -a log.txt
: > log.txt
> t
echo a > out/a; echo b > out/b
printf '%s\n' one two > log.txt
echo err >&2
command 2>/dev/null || true
exec 3> t; echo x >&3
{ echo a; echo b; } > out/a
( cd src && ls )
cd src && ls && cd ..
pushd src > /dev/null; popd > /dev/null
cat > t <<'E'
cat > config.json <<E
cat <<E >> log.txt
bash -c 'echo hi'
bash -e script.sh || true
sh -c 'rm -f t'
sh ./configure || true
. ./.env; echo "$A"
source .env
set -euo pipefail; echo ok
set -a; . ./.env; set +a
export PATH="$PWD/bin:$PATH"; env | sort | head -3
eval "$(echo echo hi)"
for f in src/*; do echo "$f"; done
for f in *.txt; do mv "$f" "${f%.txt}.md"; done
for i in $(seq 3); do echo "$i"; done
for ((i=0;i<3;i++)); do echo $i > out/$i; done
while read -r line; do echo "$line"; done < log.txt
while IFS= read -r f; do wc -c "$f"; done < <(find src -type f)
until [ -f t ]; do touch t; done
case "$1" in a) rm -f t;; *) echo other;; esac
f() { rm -rf "$1"; }; f build
trap 'rm -f t' EXIT; echo x > t
tmp=$(mktemp) && echo x > "$tmp" && mv "$tmp" t
tmp=$(mktemp -d); cp -r src "$tmp"; rm -rf "$tmp"
time ls > /dev/null
timeout 5 python3 -c pass
nohup true > out/nohup
sleep 0 & wait
nice -n 5 true
xargs -I{} cp {} out/ <<< README.md
seq 5 | xargs -P2 -n1 echo
parallel echo ::: 1 2 || true
echo "$(date +%s)" > out/now
printf 'a\tb\n' | column -t
jq . package.json || true
curl -sS http://localhost:1/ || true
npm run build || true
npm ci || true
npx tsc --noEmit || true
node -e 'console.log(1)' || true
cargo test || true
go build ./... || true
pytest -q || true
python3 -m pytest -q || true
ruff check --fix . || true
prettier --write . || true
cmake -B build || true
gcc -o out/x x.c || true
perl -ne 'print if /one/' log.txt
perl -pi -e 's/one/1/' log.txt
env FOO=1 python3 script.py
FOO=1 BAR=2 make
watch -n1 ls < /dev/null || true
du -sh . && df -h .
file README.md || true
md5sum README.md > out/sums && md5sum -c out/sums
sha256sum src/* | sort
base64 < README.md | base64 -d | cmp - README.md
xxd README.md | head -1 || od -c README.md | head -1
stat -c %s README.md
readlink -f README.md
basename "$PWD"; dirname "$PWD"
ps aux | head -3 || true
kill -0 $$
echo 'rm -rf /' > out/words
python3 -c 'import shutil; shutil.rmtree("out", ignore_errors=True)'
python3 -c "import tempfile; print(tempfile.mkdtemp())"
! false
true; false || true
ls | while read f; do [ -f "$f" ] && echo "file $f"; done
x=$(cat log.txt); echo "${x:-empty}" > "t"
a=(one two); echo "${a[@]}" > out/${a[0]}
read -r x < log.txt; echo "$x"
tee t < log.txt > /dev/null
split -l 1 log.txt out/part.
shuf log.txt -o log.txt
paste log.txt README.md > out/pasted
expand README.md > t && unexpand t > README.md
nl README.md > out/numbered
ed -s log.txt <<< $'1d\nw' || true
"""

_MORE = {
    "python3 - <<'E'": "\nprint(1)\nE",
    "cat > t <<'E'": "\nrm -rf /\nE",
    "cat > config.json <<E": '\n{"a": "$HOME"}\nE',
    "cat <<E >> log.txt": "\nmore\nE",
}


def scripts() -> list[str]:
    """Every script; here-documents with their text."""
    lines = [*SCRIPTS.strip("\n").split("\n"), *everyday_more.SCRIPTS.strip("\n").split("\n")]
    return [line + _MORE.get(line, "") for line in lines]


ARGVS: list[list[str]] = [
    ["ls", "-la"],
    ["[", "-f", "README.md", "]"],
    ["test", "-d", "src"],
    ["sed", "-e", "s/a/b/", "README.md"],
    ["sed", "-i", "s/a/b/", "README.md"],
    ["rm", "-rf", "build"],
    ["mv", "t", "t2"],
    ["cp", "README.md", "t"],
    ["git", "commit", "-qam", "x"],
    ["git", "reset", "--hard"],
    ["git", "clean", "-fdx"],
    ["make", "all"],
    ["python3", "-V"],
    ["find", ".", "-delete"],
    ["bash", "-c", "rm -rf *"],
    ["tee", "t"],
    ["truncate", "-s", "0", "t"],
    ["./script.py"],
]
"""The same by ``exec``."""
FILE_CALLS: list[tuple[str, dict[str, str]]] = [
    ("read_file", {"path": "README.md"}),
    ("read_file", {"path": ".env"}),
    ("write_file", {"path": "t", "content": "new"}),
    ("write_file", {"path": "a/new/file", "content": "new"}),
    ("edit_file", {"path": "log.txt", "old": "one", "new": "1"}),
    ("list_files", {"path": "."}),
    ("search", {"pattern": "alpha"}),
]
"""And by the file tools."""
