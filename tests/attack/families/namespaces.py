"""New namespaces, mounts, roots and rights: everything that would rebuild the world inside."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Inside

FLAGS = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
CODE = {
    "chroot out": "os.chroot('.'); os.chdir('../' * 40); os.chroot('.'); return write(given['targets'][0][1:])",
    "chroot by call": "return past_filter((161, 51)[MACHINE], given['worktree'])",
    "pivot the root": "return past_filter((155, 41)[MACHINE], '.', '.')",
    "mount a tmpfs": "return past_filter((165, 40)[MACHINE], 'x', '/tmp', 'tmpfs', 0, 0)",
    "bind over .git": "return past_filter((165, 40)[MACHINE], '/tmp', '.git', 0, 0x1000, 0)",
    "bind over the repository": "return past_filter((165, 40)[MACHINE], '/tmp', given['repo'] + '/.git', 0, 0x1000, 0)",
    "make the root writable": "return past_filter((165, 40)[MACHINE], 0, '/', 0, 0x20, 0)",
    "mount proc again": "return past_filter((165, 40)[MACHINE], 'proc', '/tmp', 'proc', 0, 0)",
    "mount by the new calls": "return past_filter(430, 'tmpfs', 0)",
    "copy a mount": "return past_filter(428, -100, '/', 1)",
    "change a mount": "return past_filter(442, -100, '/', 0, bytes(32), 32)",
    "take .git's mount away": "return past_filter((166, 39)[MACHINE], given['worktree'] + '/.git', 2)",
    "take the root away": "return past_filter((166, 39)[MACHINE], '/', 2)",
    "replace .git by rename": "open('n', 'w').write('gitdir: /tmp'); os.rename('n', '.git')",
    "replace .git by exchange": "os.mkdir('d'); syscall((316, 276)[MACHINE], -100, 'd', -100, '.git', 2)",
    "remove .git": "os.unlink('.git')",
    "write .git": "return write('.git', 'gitdir: /tmp\\n')",
    "a link over .git": "os.symlink('/tmp', 'x1'); os.replace('x1', '.git')",
    "move the worktree": "w = given['worktree']; os.rename(w, w + '.moved')",
    "enter the namespaces of process 1": (
        "d = os.open('/proc/1/ns/mnt', os.O_RDONLY); return past_filter((308, 268)[MACHINE], d, 0)"
    ),
    "enter its own": "d = os.open('/proc/self/ns/user', os.O_RDONLY); return past_filter((308, 268)[MACHINE], d, 0)",
    "enter by pidfd": "d = os.pidfd_open(1); return past_filter((308, 268)[MACHINE], d, 0x10000000)",
    "unshare the program": "return run('/usr/bin/unshare', '-Ur', 'true')",
    "unshare mounts": "return run('/usr/bin/unshare', '-m', 'true')",
    "nsenter": "return run('/usr/bin/nsenter', '-t', '1', '-m', 'true')",
    "mount the program": "return run('/bin/mount', '-t', 'tmpfs', 'x', '/tmp')",
    "bwrap inside": "return run(given['bwrap'], '--dev-bind', '/', '/', 'true')",
    "bwrap with a user": "return run(given['bwrap'], '--unshare-all', '--ro-bind', '/', '/', 'true')",
    "clone3": "return past_filter(435, ctypes.create_string_buffer(struct.pack('Q', 0x10000000), 88), 88)",
    "clone3 without flags": (
        "b = ctypes.create_string_buffer(struct.pack('QQQQQ', 0, 0, 0, 0, 17), 88)\nr = syscall(435, b, 88)\nif r == 0:"
        " os._exit(0)\nreturn 'cloned'"
    ),
    "become root": (
        "u = os.getuid()\nif u == 0: raise PermissionError(errno.EPERM, 'root of nothing already')\nos.setuid(0);"
        " return 'root'"
    ),
    "become somebody": "os.setresuid(12345, 12345, 12345); return 'somebody else'",
    "other groups": "os.setgroups([0, 6, 42]); return 'groups set'",
    "capabilities": (
        "h = struct.pack('II', 0x20080522, 0); b = struct.pack('IIIIII', 0xffffffff, 0xffffffff, 0, 0xffffffff,"
        " 0xffffffff, 0)\nsyscall((126, 91)[MACHINE], ctypes.create_string_buffer(h), ctypes.create_string_buffer(b));"
        " return 'capabilities set'"
    ),
    "map users": "return write('/proc/self/uid_map', '0 0 4294967295', os.O_WRONLY)",
    "map groups": "return write('/proc/self/gid_map', '0 0 4294967295', os.O_WRONLY)",
    "allow groups": "return write('/proc/self/setgroups', 'allow', os.O_WRONLY)",
    "host name": "syscall((170, 161)[MACHINE], 'attacked', 8); return 'host name set'",
    "give a file away": "open('mine', 'w').close(); os.chown('mine', 54321, 54321); return 'gave it away'",
    "a setuid copy": (
        "import shutil; shutil.copy('/bin/sh', 'suid'); os.chmod('suid', 0o6755); return run('./suid', '-p', '-c',"
        " f\"echo x >> {given['targets'][0]}\")"
    ),
    "file capabilities": (
        "import shutil; shutil.copy('/bin/sh', 'cap'); os.setxattr('cap', 'security.capability', struct.pack('IIIII',"
        " 0x02000001, 0xffffffff, 0, 0xffffffff, 0)); return 'set'"
    ),
    "security labels": (
        "open('lab', 'w').close(); os.setxattr('lab', 'security.selinux', b'x'); os.setxattr('lab', 'trusted.x', b'x');"
        " return 'set'"
    ),
    "sudo": "return run('/usr/bin/sudo', '-n', 'true')",
    "su": "return run('/bin/su', 'root', '-c', 'true')",
    "newuidmap": "return run('/usr/bin/newuidmap', str(os.getpid()), '0', '0', '1')",
    "pkexec": "return run('/usr/bin/pkexec', 'true')",
    "passwd": "return run('/usr/bin/passwd', '-d', 'root')",
    "crontab": "return run('/usr/bin/crontab', '-', data='* * * * * true\\n')",
    "at": "return run('/usr/bin/at', 'now', data='true\\n')",
    "systemd-run": "return run('/usr/bin/systemd-run', '--user', 'true')",
    "a cgroup": "os.mkdir('/sys/fs/cgroup/attack'); return 'made a cgroup'",
}


def _unshare(names: tuple[str, ...], how: str) -> Inside:
    flags = sum(FLAGS[name] for name in names)
    if how == "unshare":
        code = f"return past_filter((272, 97)[MACHINE], {flags})"
    else:
        code = f"r = syscall((56, 220)[MACHINE], {flags} | 17, 0, 0, 0, 0)\nif r == 0: os._exit(0)\nreturn 'cloned'"
    return Inside(f"{how} {'+'.join(names)}", code)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        for how in ("unshare", "clone"):
            yield from (_unshare((name,), how) for name in FLAGS)
            yield _unshare(("user", "mount"), how)
            yield _unshare(tuple(FLAGS), how)
        yield Inside("unshare time", "return past_filter((272, 97)[MACHINE], 0x80)")
        yield from (Inside(name, code) for name, code in CODE.items())
        yield from (
            Inside(f"{name}, network", CODE[name], access="network")
            for name in ("mount a tmpfs", "unshare the program", "bwrap inside", "chroot out")
        )
        return
    for _ in range(10):
        yield _unshare(
            tuple(sorted(dice.sample(sorted(FLAGS), dice.randrange(1, 6)))), dice.choice(("unshare", "clone"))
        )
    for name in dice.sample(sorted(CODE), 10):
        yield Inside(name, CODE[name], access=dice.choice(("sandbox", "network")))
