#!/bin/sh
# Run a command with a /tmp of its own that is in memory, where we may mount one and there is room for it (ON_DISK=1: not
# even then): the tests write and remove so many small files that a disk takes much of their time.
room=$(awk '/^MemAvailable/ { print ($2 >= 5000000) }' /proc/meminfo 2>/dev/null)
if [ -n "$ON_DISK" ] || [ "$room" != 1 ] || ! unshare --mount mount -t tmpfs tests /tmp 2>/dev/null; then
    exec "$@"
fi
exec unshare --mount sh -euc '
    here=$(pwd -P)
    mount -t tmpfs -o size=6g,mode=1777 tests /tmp
    case $here in
    /tmp/*) # a checkout that the mount hides
        mkdir -p "$here"
        mount --no-canonicalize --bind . "$here"
        ;;
    esac
    cd "$here"
    exec "$@"' sh "$@"
