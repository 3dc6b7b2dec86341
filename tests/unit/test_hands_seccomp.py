"""The system-call filter, run step by step in a small interpreter of the kernel's filter machine."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox import seccomp

ALLOW = 0x7FFF0000
KILL = 0x80000000
EPERM = 0x50000 | errno.EPERM
ENOSYS = 0x50000 | errno.ENOSYS
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def judge(steps: list[seccomp.Step], arch: int, nr: int, *args: int) -> int:
    """What the kernel would do; words are loaded as on a little-endian machine."""
    padded = [*args, *[0] * (6 - len(args))]
    data = b"".join(
        [nr.to_bytes(4, "little"), arch.to_bytes(4, "little"), bytes(8), *(arg.to_bytes(8, "little") for arg in padded)]
    )
    at = 0
    loaded = 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x20:
            loaded = int.from_bytes(data[k : k + 4], "little")
        elif code == 0x06:
            return k
        else:
            taken = {0x15: loaded == k, 0x35: loaded >= k, 0x45: bool(loaded & k)}[code]
            at += yes if taken else no


@pytest.mark.parametrize("machine", ARCHES)
@pytest.mark.parametrize("network", [False, True])
def test_what_is_refused_and_what_is_not(machine: str, network: bool) -> None:
    steps = seccomp.program(machine, network=network)
    arch = ARCHES[machine]
    column = 0 if machine == "x86_64" else 1
    for numbers in seccomp.CALLS.values():
        if (number := numbers[column]) is not None:
            assert judge(steps, arch, number) == EPERM
    socket, ioctl, clone, clone3 = (
        pair[column] for pair in (seccomp.SOCKET, seccomp.IOCTL, seccomp.CLONE, seccomp.CLONE3)
    )
    assert judge(steps, arch, socket, 2, 1, 0) == judge(steps, arch, socket, 10, 2, 0) == ALLOW
    for family in (1, 17, 38, 40, 21):  # unix, packet, crypto, vsock, rds
        assert judge(steps, arch, socket, family, 1, 0) == EPERM
    assert judge(steps, arch, socket, 16, 3, 0) == (ALLOW if network else EPERM)
    assert judge(steps, arch, socket, 16, 3, 15) == EPERM
    assert (
        judge(steps, arch, ioctl, 0, 0x5412)
        == judge(steps, arch, ioctl, 0, 0x5412 | 1 << 32)
        == judge(steps, arch, ioctl, 0, 0x541C)
        == EPERM
    )
    assert judge(steps, arch, ioctl, 0, 0x5413) == ALLOW
    assert judge(steps, arch, clone, 0x01200011) == ALLOW
    assert judge(steps, arch, clone, 0x003D0F00) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert judge(steps, arch, clone, flag | 17) == EPERM
    assert judge(steps, arch, clone3) == ENOSYS


@given(
    st.sampled_from(sorted(ARCHES)),
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
)
def test_every_call_gets_an_answer_and_other_machines_die(
    machine: str, network: bool, nr: int, first: int, second: int
) -> None:
    steps = seccomp.program(machine, network=network)
    assert judge(steps, ARCHES[machine], nr, first, second) in (ALLOW, EPERM, ENOSYS)
    assert judge(steps, 0x40000003, nr, first) == KILL  # the 32-bit door of the same machine
    if machine == "x86_64" and nr >= 0x40000000:
        assert judge(steps, ARCHES[machine], nr, first) == EPERM


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(seccomp.Unsupported, match="riscv64"):
        seccomp.program("riscv64", network=False)
