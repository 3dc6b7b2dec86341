"""Shell constructs that hide a command, each really run by bash: what deletes an untracked file must have asked first."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.hands import fence
from harness.policy.build import build_action
from harness.policy.facts import Facts
from harness.policy.judge import INSIDE, judge
from harness.policy.rules import default_policy
from harness.workspace.facts import parse_shell

# T stands for the payload, ¦ separates, ⏎ ⇥ ␍ are newline, tab and carriage return.
CORPUS = r"""
true; T ¦ true && T ¦ true | T ¦ true & T ¦ true⏎T ¦ echo `T` ¦ cat <(T) ¦ cat > >(T) ¦ cat <<E⏎`T`⏎E ¦ cat <<'E'⏎x⏎E⏎T ¦ cat <<A <<B⏎a⏎A⏎$(T)⏎B
¦ echo ${x:-$(T)} ¦ echo ${x:=$(T)} ¦ echo ${a[$(T)0]} ¦ x=a; echo ${x#$(T)} ¦ x=1; echo ${x:+$(T)} ¦ echo $((a[$(T)0])) ¦ ((a[$(T)0]++))
¦ [[ a[$(T)0] -eq 1 ]] ¦ [[ $(T) ]] ¦ echo $[1+a[`T`0]] ¦ a=(1 $(T)) ¦ a[$(T)0]=1 ¦ declare x=$(T) ¦ readonly X=$(T) ¦ for i in $(T); do :; done
¦ for ((i=$(T)0;i<1;i++)); do :; done ¦ while T; do break; done ¦ until T; do :; done ¦ if T; then :; fi ¦ case $(T) in *) :;; esac
¦ case x in $(T)) ;; esac ¦ case x in x) T;; esac ¦ case x in x) T;& y) :;; esac ¦ ( T ) ¦ { T; } ¦ time -p T ¦ coproc T; wait ¦ f() { T; }; f
¦ function f { T; }; f ¦ f() ( T ); f ¦ exec T ¦ env T ¦ eval T ¦ bash -c 'T' ¦ . <(echo T) ¦ sh <<< 'T' ¦ sh <<E⏎T⏎E ¦ env -S 'T' ¦ nohup T
¦ timeout 5 T ¦ nice T ¦ setsid T ¦ awk 'BEGIN{system("T")}' ¦ sed -n '1e T' /etc/passwd ¦ sort --compress-program=x /dev/null; T
¦ tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='T' /etc/passwd ¦ x='$(T)'; echo ${x@P} ¦ read 'a[$(T)0]' <<< x ¦ let 'a[$(T)0]=1'
¦ declare 'a[$(T)0]=1' ¦ test -v 'a[$(T)0]' ¦ [[ 'a[$(T)0]' -eq 1 ]] ¦ x='a[$(T)0]'; ((x)) ¦ BASH_ENV=<(echo T) bash -c true ¦ git -c alias.z='!T' z
¦ git -c core.sshCommand='T #' ls-remote ssh://x/y ¦ shopt -s expand_aliases⏎alias zz='T'⏎zz ¦ echo 'a' '⏎'; T ¦ echo "a⏎"; T ¦ echo a\⏎; T
¦ echo a \# ; T ¦ echo "${x#"}"}"; T ¦ echo "$(echo ")")"; T ¦ echo a␍⏎T ¦ true&&T ¦ if true;then T;fi ¦ [ 1 ] && T ¦ true \⏎&& T
¦ trap 'T' QUIT; kill -QUIT $$ ¦ printf -v 'a[$(T)0]' x ¦ mapfile -C 'T #' -c 1 <<< x ¦ command T ¦ builtin eval T ¦ printf 'T' | sh ¦ PS4='$(T)'; set -x; true
¦ local x; T ¦ ! T ¦ select i in a; do T; break; done <<< 1 ¦ flock . T ¦ stdbuf -o0 T ¦ unshare -Ur T
"""
# Constructs that name the deleting program or the file in ways of their own; no payload to fill in.
LITERAL = r"""
r=r; ${r}m M ¦ r\⏎m M ¦ "rm" M ¦ \rm M ¦ $'\x72m' M ¦ $'rm' M ¦ {rm,M} ¦ x=rm; $x M ¦ eval 'r''m M' ¦ xargs rm <<< M ¦ echo M | xargs rm
¦ find . -maxdepth 1 -name M -exec rm {} \; ¦ find . -maxdepth 1 -name M -exec rm {} + ¦ find . -name M -delete ¦ python3 -c 'import os; os.remove("M")'
¦ python3 -c 'open("M","w")' ¦ perl -e 'unlink "M"' ¦ perl -e 'open F,">M"' ¦ echo x >| M ¦ exec 3> M ¦ { true; } > M ¦ dd of=M </dev/null ¦ cp /dev/null M
¦ x=M; echo a > $x ¦ > M ¦ : > ./M ¦ true &> M ¦ true >& M ¦ tee M < /dev/null ¦ truncate -s0 M ¦ mv other M ¦ cp -f other ./M ¦ install other M
¦ ln -sf other M ¦ rm ./M ¦ rm "$PWD/M" ¦ rm -f -- M ¦ rm ?  ¦ rm [L-N] ¦ rm * ¦ cd sub && rm ../M ¦ (cd sub; rm -f ../M) ¦ pushd sub; rm ../M ¦ unlink M
¦ shred -u M ¦ perl -i -pe 's/k/q/' M ¦ sed -i s/k/q/ M ¦ find . -name M | xargs rm -f ¦ mv M gone && rm gone ¦ ls M | while read f; do rm "$f"; done
¦ for f in M; do rm $f; done
¦ git init -q . 2>/dev/null; git clean -fdq ¦ truncate --size=0 M ¦ printf '' > M ¦ cat /dev/null > "M" ¦ awk 'BEGIN{printf "" > "M"}'
¦ ed -s M <<< $'1d\nw' ¦ rm -rf . ./* ¦ rm -r ../$(basename $PWD)/M ¦ find -name M -execdir rm {} + ¦ env -i /bin/rm M ¦ nice -n 5 rm M ¦ rm M{,}
"""


def _cases() -> list[str]:
    def split(text: str) -> list[str]:
        flat = text.strip().replace("\n¦", " ¦")
        return [part.strip(" ").replace("⏎", "\n").replace("⇥", "\t").replace("␍", "\r") for part in flat.split(" ¦ ")]

    return [re.sub(r"\bT\b", "rm M", case) for case in split(CORPUS)] + split(LITERAL)


def _effects(script: str) -> tuple[list[str], str, str]:
    facts = Facts(worktree="/w", branch="b", head="h", home="/home/x", untracked=("M",), tree=parse_shell(script))
    action = build_action("s", "c1.0", "t", "shell", {"script": script}, facts)
    verdict = judge(action, default_policy())
    return action["effects"], verdict.verdict, verdict.rule


def _destroyed(cases: Mapping[int, str], folder: Path) -> set[int]:
    """Run every case with real bash in one fence and say after which of them the file no longer is what it was."""
    (folder / "cases").mkdir()
    for number, case in cases.items():
        (folder / "cases" / str(number)).write_text(case)
    (folder / "run").write_text(
        "cd /w; for n in cases/*; do d=/tmp/d/${n##*/}; mkdir -p $d/sub; cd $d; echo keep > M; echo o > other;"
        ' timeout 10 bash --norc --noprofile /w/$n </dev/null >/dev/null 2>&1; [ "$(cat M 2>/dev/null)" = keep ] || echo ${n##*/}; cd /w; done'
    )
    # Twice as many processes as needed would only wait for the two cores.
    command = [fence.find().path, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"]
    command += ["--dir", "/tmp/w", "--bind", str(folder), "/mnt", "--chdir", "/mnt", "bash", "-c", "sed -i s,/w,/mnt,g run; bash run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True)
    return {int(line) for line in done.stdout.split()}


@pytest.mark.fence
def test_what_bash_really_deletes_was_asked_about(tmp_path: Path) -> None:
    cases = dict(enumerate(_cases()))
    destroyed = _destroyed(cases, tmp_path)
    assert len(destroyed) > 100, "the corpus itself must bite"
    missed = [cases[n] for n in sorted(destroyed) if _effects(cases[n])[1] != "ask"]
    assert missed == []


@pytest.mark.parametrize("case", _cases())
def test_every_construct_is_contained_or_asks(case: str) -> None:
    effects, verdict, rule = _effects(case)
    assert all(e.startswith("delete-untracked:") for e in effects)
    assert verdict == "ask" if effects else (verdict, rule) == ("allow", INSIDE)


@pytest.mark.parametrize(
    "script",
    [
        "ls -la",
        "npm test",
        "python3 -m pytest -q",
        "git status && git add -A && git commit -qm 'x'",
        "echo hi >> M",
        "cat M | head",
        "rm -rf build",
        "grep -rn rm .",
    ],
)
def test_ordinary_work_is_not_asked_about(script: str) -> None:
    assert _effects(script) == ([], "allow", INSIDE)
