"""Secrets of the host: in environments, in descriptors that were not closed, in whatever can be read from inside."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Inside

# What these print is searched for every secret from outside; reading as such is no escape.
LOOKS = {
    "its environment": "return run('/usr/bin/env')",
    "every environment": (
        "return run('/bin/bash', '-c', 'cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null | tr \"\\\\0\""
        ' "\\\\n"\')'
    ),
    "every command": (
        "return run('/bin/bash', '-c', 'cat /proc/*/cmdline /proc/*/comm /proc/*/auxv 2>/dev/null | tr \"\\\\0\""
        ' "\\\\n"\')'
    ),
    "every descriptor": "\n".join(
        (
            "for d in range(3, 1024):",
            "    for way in (lambda: os.pread(d, 65536, 0), lambda: os.read(d, 65536)):",
            "        try:",
            "            os.set_blocking(d, False); os.write(1, way())",
            "        except OSError: continue",
        )
    ),
    "every descriptor by name": (
        "return run('/bin/bash', '-c', 'for f in /proc/*/fd/*; do timeout 0.2 head -c 65536 $f 2>/dev/null; done')"
    ),
    "descriptor names": "return run('/bin/bash', '-c', 'ls -l /proc/*/fd /proc/*/map_files 2>&1')",
    "the stack": "\n".join(
        (
            "for line in open('/proc/self/maps'):",
            "    if any(word in line for word in ('[stack]', '[heap]')):",
            "        low, high = (int(n, 16) for n in line.split()[0].split('-'))",
            "        m = open('/proc/self/mem', 'rb', 0); m.seek(low); os.write(1, m.read(high - low))",
        )
    ),
    "its folders": "return run('/bin/bash', '-c', 'ls -laR / 2>/dev/null | head -c 200000')",
    "mounts": "return run('/bin/cat', '/proc/self/mountinfo', '/proc/self/mountstats')",
    "git's folder": (
        "return run('/bin/bash', '-c', f'cd {given[\"repo\"]}/.git && find . -type f ! -path \"./objects/*\" -exec head"
        " -c 65536 {{}} +')"
    ),
    "git's worktrees": (
        "return run('/bin/bash', '-c', f'cd {given[\"repo\"]}/.git/worktrees && find . -type f -exec head -c 65536"
        " {{}} +')"
    ),
    "git's objects": "return run('/usr/bin/git', 'cat-file', '--batch-all-objects', '--batch', '--unordered')",
    "git's configuration": "return run('/usr/bin/git', 'config', '--list', '--show-origin')",
    "everything small": (
        "return run('/bin/bash', '-c', 'find / -xdev -type f -size -32k ! -path \"/usr/*\" ! -path \"/proc/*\" ! -path"
        ' "/sys/*" ! -path "/opt/*" -exec head -c 32768 {} + 2>/dev/null | head -c 4000000; true\')'
    ),
    "shared memory": (
        "return run('/bin/bash', '-c', 'cat /dev/shm/* /dev/mqueue/* 2>/dev/null; cat /proc/sysvipc/* 2>/dev/null;"
        " true')"
    ),
    "keys": "return run('/bin/bash', '-c', 'cat /proc/keys /proc/key-users 2>/dev/null; true')",
    "leftovers": (
        "return run('/bin/bash', '-c', 'ls -la /tmp /var/tmp /dev/shm /run /mnt /home /root 2>&1; cat /tmp/*"
        " 2>/dev/null; true')"
    ),
    "core patterns": (
        "return run('/bin/bash', '-c', 'ulimit -c unlimited; bash -c \"kill -SEGV \\\\$\\\\$\"; cat core* 2>/dev/null;"
        " true')"
    ),
    "its own descriptors": (
        "for d in (0, 1, 2):\n    try: os.write(1, os.readlink(f'/proc/self/fd/{d}').encode())\n    except OSError:"
        " continue"
    ),
}


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    names = list(LOOKS) if dice is None else dice.sample(sorted(LOOKS), 5)
    for name in names:
        for access in ("sandbox", "network") if dice is None else (dice.choice(("sandbox", "network")),):
            yield Inside(f"{name}, {access}", LOOKS[name], claim=False, access=access)
