#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: driver data that is short, long or dirty, for queue pairs and address
handles (U-01, A-01), spoken by hand. TAP lines.
  cases-abi.py stock|rust [WORD_OF_A_NAME]...
"""
import ctypes
import mmap
import struct
import sys
import threading

import harness
from harness import DESTROY_MCAST_GRP, MODIFY_MCAST_GRP, PAGE, devices, fail_command, in_use, outcome, run, same
from uverbs import ATTACH_MCAST, CQ_RING, DETACH_MCAST, ERR, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_STATE, \
    INIT, QP_RINGS, RC, REG_MR, UD, Context

DRIVER = sys.argv[1]


class Raw(Context):
    """The first device, with a domain and a completion queue."""

    def __init__(self):
        super().__init__(devices()[0])
        self.pd, _ = self.alloc_pd()
        self.cq = self.new_cq(self.pd)

    def make_qp(self, cut=lambda r: r, room=24, kind=RC):
        """Makes a queue pair; what is left of one that fails is taken away."""
        start, mr = self.qp_memory(self.pd)
        try:
            qp, answer = self.create_qp(self.pd, self.cq, start, kind, driver=cut(struct.pack("<QQQQ", start, 0, 0, 0)), driver_out=room)
        except OSError:
            self.dereg_mr(mr)
            raise
        return qp, answer, mr

    def end_qp(self, qp, mr):
        self.destroy_qp(qp)
        self.dereg_mr(mr)


def case(name, **more):
    """A case that is given the device and leaves nothing behind."""
    def add(f):
        def whole():
            raw = Raw()
            try:
                before = in_use()
                f(raw)
                same(in_use(), before, "what is in use:")
            finally:
                raw.close()
        return harness.case(name, **more)(whole)
    return add


@case("memory of queues is pinned for writing, whatever its user asks for",
      stock="it pins with the rights that are asked for, and the device writes to a file that may only be read")
def _(raw):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    with open(__file__, "rb") as file:
        address = libc.mmap(None, ctypes.c_size_t(PAGE), mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), ctypes.c_long(0))
    for kind in (QP_RINGS, CQ_RING):
        core = struct.pack("<QQQII", address, PAGE, address, raw.pd, 0)
        driver = struct.pack("<HHHH", kind, 1 if kind == CQ_RING else 0, 0, 0)
        same(outcome(lambda: raw.call(REG_MR, core, 12, driver, 0)), "EFAULT", f"kind {kind}:")
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(PAGE))


@case("U-01: lengths of the request and the response of a new QP")
def _(raw):
    def one(cut=lambda r: r, room=24):
        qp, answer, mr = raw.make_qp(cut, room)
        raw.end_qp(qp, mr)
        return answer
    for length in (0, 4, 8, 12):
        same(outcome(lambda: one(lambda r: r[:length])), "EINVAL", f"{length} bytes:")
    for length in (16, 20, 32):
        same(outcome(lambda: one(lambda r: r[:length])), "ok", f"{length} bytes:")
    same(outcome(lambda: one(lambda r: r + bytes(32))), "ok", "zeroes behind:")
    same(outcome(lambda: one(lambda r: r + bytes(28) + b"\x01\0\0\0")), "EOPNOTSUPP", "dirty:")
    for room in (0, 4, 16):
        same(outcome(lambda: one(room=room)), "EINVAL", f"room for {room}:")
    same(outcome(lambda: one(room=20)), "ok", "room for 20:")
    same(one(room=40)[24:], bytes(16), "the end of the response:")


@case("U-01: lengths of the request and the response of a change of a QP")
def _(raw):
    qp, _, mr = raw.make_qp()
    mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT
    same(outcome(lambda: raw.modify_qp(qp, mask, INIT, bytes(8) + b"\x01" + bytes(7))), "EOPNOTSUPP", "dirty:")
    for room in (8, 16):
        same(outcome(lambda: raw.modify_qp(qp, mask, INIT, room=room)), "EINVAL", f"room for {room}:")
    same(raw.modify_qp(qp, mask, INIT, bytes(24), 40), bytes(40), "the response:")
    same(outcome(lambda: raw.modify_qp(qp, mask, INIT)), "ok", "none:")
    same(outcome(lambda: raw.modify_qp(qp, IBV_QP_STATE, ERR, b"\1\1" + bytes(6))), "ok", "a flush:")
    same(outcome(lambda: raw.modify_qp(qp, IBV_QP_STATE, ERR, b"\1\1" + bytes(6))), "ok", "another:")
    raw.end_qp(qp, mr)


@case("U-01, A-01: lengths of the request and the response of an address handle, of which all is written")
def _(raw):
    def one(driver=b"", room=8):
        ah, answer = raw.create_ah(raw.pd, driver, room)
        raw.destroy_ah(ah)
        return answer
    for room in (0, 4):
        same(outcome(lambda: one(room=room)), "EINVAL", f"room for {room}:")
    same(one()[4:], bytes(4), "what is reserved:")
    same(one(room=24)[4:], bytes(20), "the end of the response:")
    same(outcome(lambda: one(bytes(16))), "ok", "zeroes:")
    same(outcome(lambda: one(b"\x01" + bytes(15))), "EOPNOTSUPP", "dirty:")


@case("Q-18: a queue pair of whose making the user can't be told leaves nothing, 1000 times")
def _(raw):
    libc = ctypes.CDLL(None, use_errno=True)
    room = mmap.mmap(-1, 2 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(room))
    # The core's part of the response ends where the memory does.
    same(libc.mprotect(ctypes.c_void_p(address + PAGE), ctypes.c_size_t(PAGE), 0), 0)
    start, mr = raw.qp_memory(raw.pd)
    raw.dereg_mr(mr)
    for n in range(1000):
        # Memory of rings serves once.
        mr = raw.reg_mr(raw.pd, start, 6 * PAGE, struct.pack("<HHHH", QP_RINGS, 0, 1, 4))
        same(outcome(lambda: raw.create_qp(raw.pd, raw.cq, start, at=address + PAGE - 32)), "EFAULT", f"{n}:")
        raw.dereg_mr(mr)


@case("A-09: queue pairs join and leave a multicast group at the same time; the ninth may not",
      never="first joins race, and it makes the group twice")
def _(raw):
    group = bytes.fromhex("ff1e000000000000000000000001") + b"\0\2"
    qps = [raw.make_qp(kind=UD) for _ in range(9)]
    errors = []

    def member(qp):
        try:
            for _ in range(20):
                raw.mcast(ATTACH_MCAST, qp, group)
                raw.mcast(DETACH_MCAST, qp, group)
        except OSError as error:
            errors.append(error)
    threads = [threading.Thread(target=member, args=(qp,)) for qp, _, _ in qps[:8]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(errors, [])
    for qp, _, _ in qps[:8]:
        raw.mcast(ATTACH_MCAST, qp, group)
    same(outcome(lambda: raw.mcast(ATTACH_MCAST, qps[8][0], group)), "ENOMEM", "the ninth:")
    for qp, _, _ in qps[:8]:
        raw.mcast(DETACH_MCAST, qp, group)
    for qp, _, mr in qps:
        raw.end_qp(qp, mr)


@harness.case("A-09: a device that refuses keeps no queue pair in a multicast group",
              never="it stays there, and the queue pair can never be destroyed")
def _():
    raw = Raw()
    before = in_use()
    group = bytes.fromhex("ff1e000000000000000000000001") + b"\0\3"
    members = [raw.make_qp(kind=UD) for _ in range(2)]

    def both(command):
        for qp, _, _ in members:
            raw.mcast(command, qp, group)
    both(ATTACH_MCAST)
    fail_command(MODIFY_MCAST_GRP)
    both(DETACH_MCAST)
    both(ATTACH_MCAST)
    fail_command(DESTROY_MCAST_GRP)
    both(DETACH_MCAST)
    for qp, _, mr in members:
        raw.end_qp(qp, mr)
    # What the device may still use is kept until it is reset.
    same(in_use(), before | {name: before[name] + 1 for name in ("mcast_group", "grave")}, "what is in use:")
    raw.close()


sys.exit(run(DRIVER, sys.argv[2:]))
