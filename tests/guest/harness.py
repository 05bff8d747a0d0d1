# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: what scripts of cases share.

A case is a function that fails by an exception. Its name begins with the rows
of tests/rows that it shows, and becomes a TAP line. What the stock driver does
otherwise is said in `stock`, and its failure is skipped with that text; or in
`never`, if it may not even try, but in a machine of its own (OPEN=1).
"""
import ctypes
import errno
import fcntl
import glob
import json
import mmap
import os
import time
import traceback

import pyverbs.enums as e
from pyverbs.pyverbs_error import PyverbsRDMAError

PAGE = 4096
ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
# Opcodes of the control queue.
CREATE_QP, MODIFY_QP, DESTROY_QP, REG_MR, DEALLOC_STAG, CREATE_AH, FLUSH_WQES = 0x00, 0x01, 0x02, 0x0a, 0x0d, 0x1c, 0x22
MODIFY_MCAST_GRP, DESTROY_MCAST_GRP = 0x27, 0x28

_cases = []


def case(name, stock=None, never=None):
    def add(f):
        _cases.append((name, f, stock, never))
        return f
    return add


def tidy_case(name, **more):
    """A case after which as much is in use as before."""
    def add(f):
        def whole():
            before = in_use()
            f()
            same(in_use(), before, "what is in use:")
        return case(name, **more)(whole)
    return add


def run(driver, words=()):
    """Runs the cases whose names hold one of the words, or all; returns the status to exit with."""
    failed = 0
    for name, f, stock, never in _cases:
        if words and not any(word in name for word in words):
            continue
        if driver == "stock" and never and not os.environ.get("OPEN"):
            print(f"ok - {driver}: {name} # SKIP known: {never}")
            continue
        try:
            f()
            print(f"ok - {driver}: {name}")
        except Exception as error:  # pylint: disable=broad-except
            emulator(cmd="clear_faults", port=0)
            if driver == "stock" and stock:
                print(f"ok - {driver}: {name} # SKIP known: {stock}; seen: {' '.join(str(error).split())[:160]}")
                continue
            failed += 1
            print(f"not ok - {driver}: {name}")
            for line in traceback.format_exc().splitlines()[-6:]:
                print(f"#   {line}")
    return 1 if failed else 0


def same(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what} got {got!r}, wanted {wanted!r}")


def outcome(f):
    """'ok', or the name of the error."""
    try:
        thing = f()
    except PyverbsRDMAError as error:
        return error_name(error.error_code)
    except OSError as error:
        return error_name(error.errno)
    if hasattr(thing, "close"):
        thing.close()
    return "ok"


def refused(f, wanted, what=""):
    """A call that gives this error, and nothing is kept of it."""
    before = in_use()
    same(outcome(f), wanted, what)
    same(in_use(), before, f"{what} in use:")


def error_name(number):
    # Linux has two names for one number, and the other one is not used here.
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode.get(number, str(number))


def devices():
    """The names of the driver's devices in the order of their PCI functions."""
    paths = glob.glob("/sys/class/infiniband/irdma*")
    return [os.path.basename(path) for path in sorted(paths, key=lambda path: os.path.realpath(path + "/device"))]


def node_of(name):
    """The character device of a device."""
    for path in glob.glob("/sys/class/infiniband_verbs/uverbs*"):
        with open(path + "/ibdev", encoding="ascii") as file:
            if file.read().strip() == name:
                return "/dev/infiniband/" + os.path.basename(path)
    raise AssertionError(f"no character device of {name}")


def emulator(**request):
    """As scripts/guest/emulator, without the time that a process takes."""
    with open("/dev/virtio-ports/emulator.control", "r+b", buffering=0) as port:
        port.write(json.dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += port.read(4096)
    answer = json.loads(answer)
    if not answer["ok"]:
        raise AssertionError(answer)
    return answer


def fault(point, key, action, times=1, skip=0):
    emulator(cmd="fault", port=0, rule={"point": point, "key": key, "times": times, "skip": skip, "action": action})


def fail_command(opcode, times=1):
    """Has the device refuse the next commands with this opcode: major 0xffff, minor 0x8006."""
    fault("cqp_command", opcode, {"fail": 0xffff8006}, times)


def lend(pages):
    """A DMA buffer of the module dmabuf_lender; a function that takes it back."""
    lender = os.open("/dev/dmabuf_lender", os.O_RDWR | os.O_CLOEXEC)
    buffer = fcntl.ioctl(lender, 0x4c01, pages)
    return buffer, lambda: fcntl.ioctl(lender, 0x4c02, buffer)


def struck():
    """How many faults of the first function have struck so far."""
    return emulator(cmd="status")["ports"][0]["faults_hit"]


def counted(name):
    """What debugfs counts under a name of faults of both functions; nothing for the stock driver."""
    total = 0
    for path in glob.glob("/sys/kernel/debug/irdma_rs/*/faults"):
        with open(path, encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.split()[0] == name)
    return total


def in_use():
    """What debugfs says of both functions; nothing for the stock driver."""
    out = {}
    for path in glob.glob("/sys/kernel/debug/irdma_rs/*/tables"):
        with open(path, encoding="ascii") as file:
            for line in file:
                name, used = line.split()[:2]
                if name not in ("arp", "segment"):
                    out[name] = out.get(name, 0) + int(used)
    # That nothing changes must not be for want of knowledge.
    same(bool(out), os.path.exists("/sys/module/irdma_rs"), "debugfs has tables:")
    return out


class Scattered:
    """Zeroed memory whose pages do not follow each other: they are touched out of order."""

    def __init__(self, pages):
        self.memory = mmap.mmap(-1, pages * PAGE)
        for first in (1, 0):
            for page in range(first, pages, 2):
                self.memory[page * PAGE] = 0
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.length = pages * PAGE


def status(wc):
    return e.ibv_wc_status(wc.status).name.removeprefix("IBV_WC_")


def poll(cq, n=1, seconds=10):
    """Up to n completions."""
    out = []
    end = time.time() + seconds
    while len(out) < n and time.time() < end:
        count, wcs = cq.poll(n - len(out))
        out += wcs
        if not count:
            time.sleep(0.002)
    return out


def statuses(cq, n=1, seconds=10):
    return [status(wc) for wc in poll(cq, n, seconds)]
