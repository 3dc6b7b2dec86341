#!/bin/sh
# The end-to-end tests drive a real terminal multiplexer, one holds what we tell gh against the real one, and one sets a
# clock; install what they need where we may, say so where we may not.
missing=
for tool in tmux strace gh; do
    command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev" # the clock of one fleet is set by a library made here
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null && exit 0
fi
echo "note: not installed:$missing; the tests that need them will be skipped. Install them with your package manager to run every test." >&2
exit 0
