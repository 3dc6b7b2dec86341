"""More of what agents run all day: Python, Node, Go, Rust, make, git and the tools of the web.

Nobody may be asked about any of them.
"""

from __future__ import annotations

SCRIPTS = r"""
python -m pip --version
python3 -m pip list --outdated --no-index
python3 -m pip install --no-index --no-deps -e .
python3 -m pip wheel --no-index -w wheels .
python3 -m pip freeze > requirements.txt
python3 -m build --no-isolation
python3 -m pytest --collect-only -q
python3 -m pytest -k "not slow" --lf
python3 -m pytest --cov=src --cov-report=xml
python3 -m unittest -v
python3 -m doctest README.md
python3 -m cProfile -o out/prof script.py
python3 -m timeit 'sum(range(10))'
python3 -m http.server --help
python3 -m zipapp src -o out/app.pyz
python3 -m tarfile -c out/a.tar src
python3 -m black --check .
python3 -m mypy --strict src
python3 -m ruff check .
python3 -m isort --diff .
python3 -m flake8 src
python3 -m pylint src --exit-zero
python3 -m coverage html -d out/cov
python3 -m tox -e py311 --notest
python3 -m nox -s tests
python3 -m sphinx -b html docs out/docs
python3 manage.py migrate --plan
python3 manage.py test
python3 setup.py sdist
python3 -X importtime -c 'import json'
PYTHONPATH=src python3 -c 'import a'
PYTHONDONTWRITEBYTECODE=1 python3 -m pytest -p no:cacheprovider
poetry check
poetry run pytest
pdm run lint
hatch run test
uv run --offline pytest
uv pip list
pipenv run test
pre-commit run --all-files
virtualenv --no-download out/v
. .venv/bin/activate && which python
ipython -c 'print(1)'
jupyter nbconvert --to script notes.ipynb
pyright src
node --version
node --test
node --check src/index.js
node -p 'process.version'
npm --version
npm ls --depth=0
npm run lint --if-present
npm run build --workspaces
npm pack --dry-run
npm version patch --no-git-tag-version
npm audit --offline
npm ci --offline --ignore-scripts
npm rebuild
npm exec --no -- tsc -p .
npm pkg get name
npx --no-install jest --ci
npx --no-install vitest run
npx --no-install prettier --check .
npx --no-install vite build
npx --no-install webpack --mode production
npx --no-install playwright --version
yarn --version
yarn install --offline --frozen-lockfile
yarn test
yarn workspace a build
pnpm -r test
pnpm install --offline
pnpm dlx --help
bun test
bun run build
deno fmt --check
deno test --allow-read
tsc --noEmit --watch false
eslint . --fix
jest --coverage
mocha --recursive
rm -rf node_modules package-lock.json
node -e "require('fs').writeFileSync('out/n', 'x')"
node -e "require('child_process').execSync('ls')"
NODE_ENV=test node script.js
NODE_OPTIONS=--max-old-space-size=512 npm test
go version
go env GOPATH
go env -w GOFLAGS=-mod=mod
go mod tidy
go mod download
go mod vendor
go mod init example.org/x
go get example.org/x@latest
go build -o out/app ./cmd/app
go test -race -count=1 ./...
go test -run TestX -v ./pkg
go test -bench . -benchmem
go test -coverprofile=out/c.out ./...
go tool cover -func=out/c.out
go vet ./...
go fmt ./...
gofmt -l -w .
go generate ./...
go run ./cmd/app --help
go list -m all
go clean -cache -testcache
go install ./...
go work init
golangci-lint run --fix
CGO_ENABLED=0 GOOS=linux go build ./...
cargo --version
cargo check --offline
cargo build --release --offline
cargo run --offline -- --help
cargo test --offline --doc
cargo bench --offline --no-run
cargo add serde --offline
cargo update --offline
cargo tree --offline
cargo doc --offline --no-deps
cargo fmt --check
cargo clippy --offline --fix --allow-dirty
cargo metadata --format-version 1 --offline
cargo new out/crate
cargo install --path . --root out
rustc --version
rustfmt src/main.rs
RUST_BACKTRACE=1 cargo test --offline
RUSTFLAGS='-D warnings' cargo check --offline
wasm-pack build --mode no-install
make help
make -k -j4 test
make --dry-run install
make DESTDIR=$PWD/out install
make -f Makefile VERBOSE=1
make CC=clang CFLAGS=-O2
make -B all
make -C src
make distclean
make "$@"
cmake -S . -B build -G Ninja
cmake --build build --parallel
ctest --test-dir build --output-on-failure
meson setup build
ninja -C build
./configure --prefix=$PWD/out
autoreconf -fi
bazel build //...
gradle --offline test
./gradlew build --offline
mvn -o -q verify
ant clean
javac -d out src/A.java
scons -j2
just test
task build
git init -q sub
git add -p < /dev/null
git add -N .
git commit --amend --no-edit
git commit --fixup HEAD
git rebase -i --autosquash HEAD~1
git stash push -m wip -- README.md
git stash apply
git stash drop
git checkout -
git switch --detach HEAD
git branch --show-current
git branch -m topic other
git branch -D topic
git merge --abort
git merge --squash topic
git cherry-pick --abort
git revert --no-commit HEAD
git reset --soft HEAD~1
git reset --keep HEAD
git clean -nd
git diff --name-status HEAD~1
git diff --word-diff
git log --graph --all --oneline
git log -S alpha
git shortlog -sn
git show --stat
git grep -c alpha
git ls-tree -r HEAD
git cat-file -p HEAD
git rev-list --count HEAD
git merge-base HEAD HEAD
git apply --check x.patch
git am --abort
git format-patch -1 -o out
git archive -o out/a.zip HEAD
git notes list
git config --get user.email
git config --local -l
git remote -v
git tag -l
git worktree prune
git gc --auto
git fsck --no-progress
git update-index --refresh
git check-ignore -v out
git submodule foreach true
git sparse-checkout list
git blame -L 1,2 README.md
git bundle create out/b HEAD
hugo --minify
jekyll build
php -l index.php
php -S localhost:0 --help
composer validate --no-check-publish
bundle exec rake test
rails test
rspec
ruby -e 'puts 1'
perl -c script.pl
sqlite3 out/db.sqlite 'create table t(x)'
sqlite3 out/db.sqlite .dump
psql --version
redis-cli --version
curl -sS http://127.0.0.1:8000/health
curl --version
wget --version
openssl rand -hex 8
openssl req -x509 -newkey rsa:2048 -nodes -keyout out/k -out out/c -subj /CN=x
ssh-keygen -q -t ed25519 -N '' -f out/key
html-validate index.html
sass src/a.scss out/a.css
tailwindcss -o out/t.css
esbuild src/a.js --bundle --outfile=out/a.js
terraform fmt -check
shellcheck script.sh
shfmt -d .
yamllint .
jq -r .name package.json
yq .a config.yml
ffmpeg -version
pandoc README.md -o out/r.html
"""
