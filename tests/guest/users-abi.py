#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: the driver's interface with its user-space library,
spoken by hand, so that it can be spoken wrongly. Prints TAP lines.
  users-abi.py stock|rust DEVICE
"""
import ctypes
import errno
import mmap
import os
import struct
import sys
import traceback

DRIVER, NAME = sys.argv[1:3]
PAGE = 4096
# include/uapi/rdma/ib_user_verbs.h, enum ib_uverbs_write_cmds
GET_CONTEXT, ALLOC_PD, DEALLOC_PD, REG_MR, DEREG_MR = 0, 3, 4, 9, 13
CREATE_CQ, RESIZE_CQ, DESTROY_CQ, CREATE_QP, DESTROY_QP, ATTACH_MCAST, DETACH_MCAST = 18, 19, 20, 24, 27, 30, 31
# include/uapi/rdma/irdma-abi.h
MEMORY, QP_RINGS, CQ_RING = 0, 1, 2
RC, UD = 2, 4

cases = []


def case(name, never=None):
    """A case. What the stock driver does otherwise, so that it may not even try, is in `never`."""
    def add(f):
        cases.append((name, f, never))
        return f
    return add


def same(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what} got {got!r}, wanted {wanted!r}")


def result(f):
    """'ok', or the name of the error."""
    try:
        f()
    except OSError as error:
        return {errno.EOPNOTSUPP: "EOPNOTSUPP"}.get(error.errno, errno.errorcode[error.errno])
    return "ok"


class Context:
    """The device, opened once."""

    def __init__(self, open_it=True):
        names = [d for d in os.listdir("/sys/class/infiniband_verbs") if d.startswith("uverbs")]
        node = next(d for d in names if open(f"/sys/class/infiniband_verbs/{d}/ibdev").read().strip() == NAME)
        self.fd = os.open(f"/dev/infiniband/{node}", os.O_RDWR | os.O_CLOEXEC)
        self.kept = []
        if open_it:
            self.get_context(struct.pack("<IB3xQ", 0, 5, 1), 80)

    def write(self, command, payload, out=0):
        header = struct.pack("<IHH", command, (8 + len(payload)) // 4, out // 4)
        os.write(self.fd, header + payload)

    def call(self, command, core, core_out, driver, driver_out):
        """Issues a command, returns the core's and the driver's part of the response."""
        room = ctypes.create_string_buffer(b"\xaa" * (core_out + driver_out), core_out + driver_out)
        self.write(command, struct.pack("<Q", ctypes.addressof(room)) + core + driver, len(room))
        return room.raw[:core_out], room.raw[core_out:]

    def get_context(self, driver, driver_out):
        core, answer = self.call(GET_CONTEXT, b"", 8, driver, driver_out)
        os.close(struct.unpack("<II", core)[0])
        return answer

    def alloc_pd(self, driver=b"", driver_out=8):
        core, answer = self.call(ALLOC_PD, b"", 4, driver, driver_out)
        return struct.unpack("<I", core)[0], answer

    def dealloc_pd(self, pd):
        self.write(DEALLOC_PD, struct.pack("<I", pd))

    def memory(self, pages):
        memory = mmap.mmap(-1, pages * PAGE)
        self.kept.append(memory)
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def reg_mr(self, pd, start, length, driver):
        core, _ = self.call(REG_MR, struct.pack("<QQQII", start, length, start, pd, 1), 12, driver, 0)
        return struct.unpack("<III", core)[0]

    def dereg_mr(self, mr):
        self.write(DEREG_MR, struct.pack("<I", mr))

    def cq_memory(self, pd, pages=1):
        """Registers a ring and a shadow area; both addresses and both handles."""
        ring, shadow = self.memory(pages), self.memory(1)
        return ring, shadow, \
            self.reg_mr(pd, ring, pages * PAGE, struct.pack("<HHHH", CQ_RING, pages, 0, 0)), \
            self.reg_mr(pd, shadow, PAGE, struct.pack("<HHHH", CQ_RING, 1, 0, 0))

    def create_cq(self, cqe, driver, driver_out=8):
        core, answer = self.call(CREATE_CQ, struct.pack("<QIIiI", 0, cqe, 0, -1, 0), 8, driver, driver_out)
        return struct.unpack("<II", core)[0], answer

    def destroy_cq(self, cq):
        self.call(DESTROY_CQ, struct.pack("<II", cq, 0), 8, b"", 0)

    def new_cq(self, pd, pages=1, cqe=64):
        ring, shadow, _, _ = self.cq_memory(pd, pages)
        return self.create_cq(cqe, struct.pack("<QQ", ring, shadow))[0]

    def qp_memory(self, pd, send=4, recv=1):
        """Registers rings and shadow area. The smallest send ring has 512 quanta, as some are reserved."""
        start = self.memory(send + recv + 1)
        return start, self.reg_mr(pd, start, (send + recv + 1) * PAGE, struct.pack("<HHHH", QP_RINGS, 0, recv, send))

    def create_qp(self, pd, cq, start, kind=RC, send=8, recv=8, sge=1, inline=0, driver=None, driver_out=24):
        core = struct.pack("<QIIIIIIIIIBBBB", 0, pd, cq, cq, 0, send, recv, sge, sge, inline, 0, kind, 0, 0)
        driver = struct.pack("<QQQQ", start, 0, 0, 0) if driver is None else driver
        core, answer = self.call(CREATE_QP, core, 32, driver, driver_out)
        return struct.unpack("<8I", core)[0], answer

    def destroy_qp(self, qp):
        self.call(DESTROY_QP, struct.pack("<II", qp, 0), 4, b"", 0)

    def mcast(self, command, qp, group):
        self.write(command, group + struct.pack("<IHH", qp, 0, 0))

    def close(self):
        os.close(self.fd)


def sweep(f, driver, least, known):
    """What lengths of a request must give: f takes the request."""
    for length in range(0, len(driver) + 20, 4):
        request = (driver + bytes(64))[:length]
        same(result(lambda: f(request)), "EINVAL" if length < least else "ok", f"{length} bytes:")
    for length in (known + 4, known + 32):
        request = (driver + bytes(64))[:length - 4] + b"\x01\0\0\0"
        same(result(lambda: f(request)), "EOPNOTSUPP", f"{length} bytes, dirty:")


@case("U-01: lengths of the request to open the device")
def _():
    good = struct.pack("<IB3xQ", 0, 5, 0)

    def one(request):
        context = Context(False)
        try:
            context.get_context(request, 80)
        finally:
            context.close()
    sweep(one, good, 8, 16)
    context = Context(False)
    # Nothing is kept of what failed.
    same(result(lambda: context.get_context(good[:4], 80)), "EINVAL")
    same(result(lambda: context.get_context(struct.pack("<IB3xQ", 0, 9, 0), 80)), "EINVAL")
    same(result(lambda: context.get_context(struct.pack("<IB3xQ", 0, 5, 1 << 20), 80)), "EOPNOTSUPP")
    answer = context.get_context(good, 120)
    same(answer[80:], bytes(40), "the end of the response")
    same(result(lambda: context.get_context(good, 80)), "EINVAL")
    context.close()


@case("U-01: lengths of the request and the response of a new domain")
def _():
    context = Context()
    for room in (0, 4):
        same(result(lambda: context.alloc_pd(driver_out=room)), "EINVAL", f"room for {room}:")
    pd, answer = context.alloc_pd(driver_out=24)
    same(answer[4:], bytes(20), "the end of the response")
    context.dealloc_pd(pd)
    same(result(lambda: context.alloc_pd(bytes(16))), "ok", "zeroes:")
    same(result(lambda: context.alloc_pd(b"\x01" + bytes(15))), "EOPNOTSUPP", "dirty:")
    context.close()


@case("U-01: lengths of the request and the response of a new CQ")
def _():
    context = Context()
    pd, _ = context.alloc_pd()

    def one(cut, room=8):
        ring, shadow, _, _ = context.cq_memory(pd)
        cq, answer = context.create_cq(64, cut(struct.pack("<QQ", ring, shadow)), room)
        context.destroy_cq(cq)
        return answer
    for length in (0, 4):
        same(result(lambda: one(lambda r: r[:length])), "EINVAL", f"{length} bytes:")
    same(result(lambda: one(lambda r: r + bytes(16))), "ok", "zeroes behind:")
    same(result(lambda: one(lambda r: r + bytes(12) + b"\x01\0\0\0")), "EOPNOTSUPP", "dirty:")
    for room in (0, 4):
        same(result(lambda: one(lambda r: r, room)), "EINVAL", f"room for {room}:")
    same(one(lambda r: r, 24)[8:], bytes(16), "the end of the response")
    context.close()


@case("U-01: lengths of the request of a registration")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    start = context.memory(1)

    def one(request):
        context.dereg_mr(context.reg_mr(pd, start, PAGE, request))
    sweep(one, bytes(8), 8, 8)
    same(result(lambda: one(struct.pack("<HHHH", 7, 0, 0, 0))), "EINVAL", "kind 7:")
    same(result(lambda: one(struct.pack("<HHHH", QP_RINGS, 0, 1, 1))), "EINVAL", "rings larger than the memory:")
    same(result(lambda: one(struct.pack("<HHHH", CQ_RING, 2, 0, 0))), "EINVAL", "ring larger than the memory:")
    context.close()


@case("Q-22: a CQ larger than its registered pages is refused", never="the device goes beyond the pages")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    # 128 entries fill a page.
    for cqe, wanted in ((128, "ok"), (129, "EINVAL"), (4096, "EINVAL"), (0x7fffffff, "EINVAL"), (0xffffffff, "EINVAL")):
        ring, shadow, _, _ = context.cq_memory(pd)
        same(result(lambda: context.create_cq(cqe, struct.pack("<QQ", ring, shadow))), wanted, f"{cqe} entries:")
    cq = context.new_cq(pd)
    for cqe, wanted in ((129, "EINVAL"), (100000, "EINVAL"), (128, "ok"), (16, "ok")):
        ring, _, _, _ = context.cq_memory(pd)
        same(result(lambda: context.call(RESIZE_CQ, struct.pack("<II", cq, cqe), 8, struct.pack("<Q", ring), 0)), wanted,
             f"resized to {cqe}:")
    context.close()


@case("Q-19, Q-22: rings of a QP larger than the device or the registered pages are refused",
      never="the device goes beyond the pages")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    cq = context.new_cq(pd)
    for send, recv, wanted in ((8, 8, "ok"), (1000, 8, "EINVAL"), (8, 1000, "EINVAL"), (0x7fffffff, 8, "EINVAL"),
                               (8, 0x7fffffff, "EINVAL"), (0xffffffff, 1, "EINVAL"), (1, 0xffffffff, "EINVAL"), (1, 1, "ok")):
        start, _ = context.qp_memory(pd)
        same(result(lambda: context.create_qp(pd, cq, start, send=send, recv=recv)), wanted, f"{send}, {recv}:")
    for more in ({"sge": 14}, {"inline": 102}, {"sge": 0xffffffff}, {"inline": 0xffffffff}):
        start, _ = context.qp_memory(pd)
        same(result(lambda: context.create_qp(pd, cq, start, **more)), "EINVAL", f"{more}:")
    context.close()


@case("M-02: memory of a queue that exists can't be deregistered")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    ring, shadow, ring_mr, shadow_mr = context.cq_memory(pd)
    cq, _ = context.create_cq(64, struct.pack("<QQ", ring, shadow))
    start, rings_mr = context.qp_memory(pd)
    qp, _ = context.create_qp(pd, cq, start)
    for mr in (ring_mr, shadow_mr, rings_mr):
        same(result(lambda: context.dereg_mr(mr)), "EBUSY")
    # The ring of before is free after a resize.
    other, _, other_mr, _ = context.cq_memory(pd)
    context.call(RESIZE_CQ, struct.pack("<II", cq, 32), 8, struct.pack("<Q", other), 0)
    same(result(lambda: context.dereg_mr(ring_mr)), "ok")
    same(result(lambda: context.dereg_mr(other_mr)), "EBUSY")
    context.destroy_qp(qp)
    same(result(lambda: context.dereg_mr(rings_mr)), "ok")
    context.destroy_cq(cq)
    for mr in (other_mr, shadow_mr):
        same(result(lambda: context.dereg_mr(mr)), "ok")
    # A queue needs memory that nobody else uses.
    same(result(lambda: context.create_cq(64, struct.pack("<QQ", ring, shadow)))[0], "E")
    context.close()


@case("M-02: a process that ends with queues leaves nothing")
def _():
    for _ in range(5):
        context = Context()
        pd, _ = context.alloc_pd()
        cq = context.new_cq(pd)
        ring, _, _, _ = context.cq_memory(pd)
        context.call(RESIZE_CQ, struct.pack("<II", cq, 32), 8, struct.pack("<Q", ring), 0)
        start, _ = context.qp_memory(pd)
        context.create_qp(pd, cq, start)
        context.close()


@case("Q-30: there are no shared receive queues")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    # IB_USER_VERBS_CMD_CREATE_SRQ
    same(result(lambda: context.call(32, struct.pack("<QIIII", 0, pd, 8, 1, 0), 16, bytes(16), 8)), "EOPNOTSUPP")
    context.close()


@case("A-09: a multicast group takes eight members, each as often as it likes")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    cq = context.new_cq(pd)
    group = bytes(10) + b"\xff\xff" + bytes((239, 1, 1, 7))
    other = b"\xff\x15" + bytes(12) + b"\0\x07"
    qps = []
    for _ in range(9):
        start, _ = context.qp_memory(pd)
        qps.append(context.create_qp(pd, cq, start, kind=UD)[0])
    for qp in qps[:8]:
        same(result(lambda: context.mcast(ATTACH_MCAST, qp, group)), "ok")
    same(result(lambda: context.mcast(ATTACH_MCAST, qps[8], group)), "ENOMEM", "the ninth:")
    same(result(lambda: context.mcast(ATTACH_MCAST, qps[8], other)), "ok", "another group:")
    context.mcast(ATTACH_MCAST, qps[0], group)
    context.mcast(DETACH_MCAST, qps[3], group)
    same(result(lambda: context.mcast(ATTACH_MCAST, qps[8], group)), "ok", "the ninth in a free place:")
    same(result(lambda: context.mcast(DETACH_MCAST, qps[3], group)), "EINVAL", "one that is no member:")
    same(result(lambda: context.mcast(ATTACH_MCAST, qps[1], bytes(10) + b"\xff\xff\x0a\0\0\1")), "EINVAL", "no group:")
    for qp in (*qps[:3], *qps[4:]):
        same(result(lambda: context.mcast(DETACH_MCAST, qp, group)), "ok")
    same(result(lambda: context.mcast(DETACH_MCAST, qps[8], other)), "ok")
    # Some members are left when the process ends.
    for qp in qps[:4]:
        context.mcast(ATTACH_MCAST, qp, other)
    context.close()


failed = 0
for name, f, never in cases:
    if DRIVER == "stock" and never:
        print(f"ok - {DRIVER}: {name} # SKIP known: {never}")
        continue
    try:
        f()
        print(f"ok - {DRIVER}: {name}")
    except Exception:  # pylint: disable=broad-except
        failed += 1
        print(f"not ok - {DRIVER}: {name}")
        for line in traceback.format_exc().splitlines()[-6:]:
            print(f"#   {line}")
sys.exit(1 if failed else 0)
