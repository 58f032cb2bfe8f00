"""Start a program so that it dies with its parent, under another user if asked.

Used as a script, because setting these in a forked Python child is unsafe beside threads, and
because `setpriv` is not everywhere. It replaces itself by the program, so the process id stays.
The death signal is tied to the *thread* that started the child: start from a thread that lives on.
"""

import ctypes
import os
import signal
import sys
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_PR_SET_KEEPCAPS = 8
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True)
class Drop:
    """The user to become; `dac_override`: still able to cross folders closed to that user."""

    uid: int
    gid: int
    dac_override: bool = False


def guarded(
    command: list[str], *, die_with: signal.Signals = signal.SIGKILL, drop: Drop | None = None
) -> list[str]:
    """The command line that runs `command` and sends it `die_with` when this thread ends."""
    user = f"{drop.uid}:{drop.gid}:{int(drop.dac_override)}" if drop else "-"
    return [
        sys.executable,
        "-I",
        "-S",
        __file__,
        str(os.getpid()),
        str(int(die_with)),
        user,
        *command,
    ]


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _keep_dac_override(libc: ctypes.CDLL) -> None:
    """Leave only CAP_DAC_OVERRIDE, and let it pass through exec."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    bit = 1 << _CAP_DAC_OVERRIDE
    data = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)  # effective, permitted, inheritable; twice
    _checked(libc.capset(header, data))
    _checked(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0))


def _become(libc: ctypes.CDLL, user: str) -> None:
    uid, gid, keep = (int(part) for part in user.split(":"))
    if keep:
        _checked(libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if keep:
        _keep_dac_override(libc)


def _main(argv: list[str]) -> None:
    parent, die_with, user, *command = argv
    libc = ctypes.CDLL(None, use_errno=True)
    if user != "-":
        _become(libc, user)
    # After the change of user: the kernel clears the death signal when credentials change.
    _checked(libc.prctl(_PR_SET_PDEATHSIG, int(die_with), 0, 0, 0))
    if os.getppid() != int(parent):
        sys.exit("the parent is gone")
    os.execv(command[0], command)  # noqa: S606 - an absolute path chosen by our own code


if __name__ == "__main__":
    _main(sys.argv[1:])
