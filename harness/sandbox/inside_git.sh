#!/bin/sh
# The git of a call without network: the system's own, and one line on what to do where it needs what is not here.
real=/usr/bin/git
own=${0%/*}
IFS=:
for folder in $PATH; do
    if [ "$folder" != "$own" ] && [ -x "$folder/git" ]; then
        real=$folder/git
        break
    fi
done
unset IFS
verb= what= skip=
for word do
    if [ -n "$skip" ]; then
        skip=
        continue
    fi
    case $word in
    -C | -c | --git-dir | --work-tree | --namespace | --config-env) [ -n "$verb" ] || skip=1 ;;
    -*) ;;
    *)
        if [ -n "$verb" ]; then
            what=$word
            break
        fi
        verb=$word
        ;;
    esac
done
case $verb-$what in
clone-* | fetch-* | ls-remote-* | pull-* | push-*) ;;
remote-update | remote-show | remote-prune | submodule-update | submodule-add | worktree-add) ;;
*) exec "$real" "$@" ;;
esac
"$real" "$@"
code=$?
if [ "$code" = 0 ] || [ -n "${https_proxy-}" ]; then
    exit "$code"
fi
case $verb in
push)
    say='nothing is pushed from inside the sandbox; your commits reach the person without it. To push, run'
    say="$say \"git push REMOTE BRANCH\" as a call of its own with the tool exec, and a person decides"
    ;;
submodule)
    say='no submodule can be fetched in the sandbox. Those that the person has were laid out at the start; ask the'
    say="$say person to run \"git submodule update --init --recursive\" for others"
    ;;
worktree)
    say='only this worktree and /tmp can be written. Use "git worktree add /tmp/NAME" (gone after this call), or'
    say="$say a folder below this worktree that you do not commit"
    ;;
*)
    for head in MERGE_HEAD REBASE_HEAD; do
        if "$real" rev-parse --quiet --verify "$head" >/dev/null 2>&1; then
            exit "$code"
        fi
    done
    say='no remote and no other folder can be reached from the sandbox. Branches, those of remotes too, and tags are'
    say="$say here as the person has them (\"git branch -a\"); for newer ones run this as a call of its own with access"
    say="$say \"network\" and its hosts, and a person decides"
    ;;
esac
printf 'watchfloor: %s.\n' "$say" >&2
exit "$code"
