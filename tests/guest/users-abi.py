#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: the driver's interface with its user-space library,
spoken by hand, so that it can be spoken wrongly. Prints TAP lines.
  users-abi.py stock|rust DEVICE
"""
import struct
import sys

import uverbs
from harness import PAGE, in_use, outcome, refused, run, same
from harness import tidy_case as case
from uverbs import ATTACH_MCAST, CQ_RING, CREATE_SRQ, DETACH_MCAST, INIT, QP_RINGS, REG_MR, UD, \
    IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_RATE_LIMIT, IBV_QP_STATE

DRIVER, NAME = sys.argv[1:3]


def Context(open_it=True):
    return uverbs.Context(NAME, open_it)


def sweep(f, driver, least, known):
    """What lengths of a request must give: f takes the request."""
    for length in range(0, len(driver) + 20, 4):
        request = (driver + bytes(64))[:length]
        before = in_use()
        same(outcome(lambda: f(request)), "EINVAL" if length < least else "ok", f"{length} bytes:")
        same(in_use(), before, f"{length} bytes, in use:")
    for length in (known + 4, known + 32):
        request = (driver + bytes(64))[:length - 4] + b"\x01\0\0\0"
        refused(lambda: f(request), "EOPNOTSUPP", f"{length} bytes, dirty:")


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
    same(outcome(lambda: context.get_context(good[:4], 80)), "EINVAL")
    same(outcome(lambda: context.get_context(struct.pack("<IB3xQ", 0, 9, 0), 80)), "EINVAL")
    same(outcome(lambda: context.get_context(struct.pack("<IB3xQ", 0, 5, 1 << 20), 80)), "EOPNOTSUPP")
    for room in range(0, 16, 4):
        same(outcome(lambda: context.get_context(good, room)), "EINVAL", f"room for {room}:")
    # So much has the library of the first generation, which can't serve this one.
    same(outcome(lambda: context.get_context(good, 16)), "EOPNOTSUPP", "room for 16:")
    for room in (20, 40, 76):
        other = Context(False)
        same(len(other.get_context(good, room)), room)
        other.close()
    answer = context.get_context(good, 120)
    same(answer[80:], bytes(40), "the end of the response")
    same(outcome(lambda: context.get_context(good, 80)), "EINVAL")
    context.close()


@case("U-01: lengths of the request and the response of a new domain")
def _():
    context = Context()
    for room in (0, 4):
        same(outcome(lambda: context.alloc_pd(driver_out=room)), "EINVAL", f"room for {room}:")
    pd, answer = context.alloc_pd(driver_out=24)
    same(answer[4:], bytes(20), "the end of the response")
    context.dealloc_pd(pd)
    same(outcome(lambda: context.alloc_pd(bytes(16))), "ok", "zeroes:")
    same(outcome(lambda: context.alloc_pd(b"\x01" + bytes(15))), "EOPNOTSUPP", "dirty:")
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
        same(outcome(lambda: one(lambda r: r[:length])), "EINVAL", f"{length} bytes:")
    same(outcome(lambda: one(lambda r: r + bytes(16))), "ok", "zeroes behind:")
    same(outcome(lambda: one(lambda r: r + bytes(12) + b"\x01\0\0\0")), "EOPNOTSUPP", "dirty:")
    for room in (0, 4):
        same(outcome(lambda: one(lambda r: r, room)), "EINVAL", f"room for {room}:")
    same(one(lambda r: r, 24)[8:], bytes(16), "the end of the response")
    context.close()


@case("U-01: lengths of the request and the response of a CQ's new size")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    cq = context.new_cq(pd)
    sizes = iter(range(8, 128))

    def one(cut=lambda r: r, room=0):
        ring = context.memory(1)
        mr = context.reg_cq_ring(pd, ring, 1)
        try:
            return context.resize_cq(cq, next(sizes), cut(struct.pack("<Q", ring)), room)
        except OSError:
            context.dereg_mr(mr)
            raise
    for length in (0, 4):
        refused(lambda: one(lambda r: r[:length]), "EINVAL", f"{length} bytes:")
    refused(lambda: one(lambda r: r + b"\x01\0\0\0"), "EOPNOTSUPP", "dirty:")
    refused(lambda: one(lambda r: r + bytes(28) + b"\x01\0\0\0"), "EOPNOTSUPP", "dirty, longer:")
    same(outcome(one), "ok", "8 bytes:")
    same(outcome(lambda: one(lambda r: r + bytes(32))), "ok", "zeroes behind:")
    same(one(room=16), bytes(16), "the response")
    context.close()


@case("U-01: driver data of verbs that have none")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    mr = context.reg_mr(pd, context.memory(1), PAGE, bytes(8))
    for name, f in (("limits of the device", context.query_device),
                    ("a registration anew", lambda *data: context.rereg_mr(mr, pd, *data))):
        refused(lambda: f(bytes(8) + b"\x01" + bytes(7), 0), "EOPNOTSUPP", f"{name}, dirty:")
        same(f(bytes(16), 24), bytes(24), f"{name}, the response:")
        same(outcome(f), "ok", f"{name}, none:")
    context.close()


@case("U-01: lengths of the request of a registration")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    start = context.memory(1)

    def one(request):
        context.dereg_mr(context.reg_mr(pd, start, PAGE, request))
    sweep(one, bytes(8), 8, 8)
    refused(lambda: one(struct.pack("<HHHH", 7, 0, 0, 0)), "EINVAL", "kind 7:")
    refused(lambda: one(struct.pack("<HHHH", QP_RINGS, 0, 1, 1)), "EINVAL", "rings larger than the memory:")
    refused(lambda: one(struct.pack("<HHHH", CQ_RING, 2, 0, 0)), "EINVAL", "ring larger than the memory:")
    same(context.call(REG_MR, struct.pack("<QQQII", start, PAGE, start, pd, 1), 12, bytes(8), 16)[1], bytes(16), "the response")
    context.close()


@case("Q-22: a CQ larger than its registered pages is refused", never="the device goes beyond the pages")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    # 128 entries fill a page.
    for cqe, wanted in ((128, "ok"), (129, "EINVAL"), (4096, "EINVAL"), (0x7fffffff, "EINVAL"), (0xffffffff, "EINVAL")):
        ring, shadow, _, _ = context.cq_memory(pd)
        same(outcome(lambda: context.create_cq(cqe, struct.pack("<QQ", ring, shadow))), wanted, f"{cqe} entries:")
    cq = context.new_cq(pd)
    for cqe, wanted in ((129, "EINVAL"), (100000, "EINVAL"), (128, "ok"), (16, "ok")):
        ring, _, _, _ = context.cq_memory(pd)
        same(outcome(lambda: context.resize_cq(cq, cqe, struct.pack("<Q", ring))), wanted,
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
        same(outcome(lambda: context.create_qp(pd, cq, start, send=send, recv=recv)), wanted, f"{send}, {recv}:")
    for more in ({"sge": 14}, {"inline": 102}, {"sge": 0xffffffff}, {"inline": 0xffffffff}):
        start, _ = context.qp_memory(pd)
        same(outcome(lambda: context.create_qp(pd, cq, start, **more)), "EINVAL", f"{more}:")
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
        same(outcome(lambda: context.dereg_mr(mr)), "EBUSY")
    # The ring of before is free after a resize.
    other, _, other_mr, _ = context.cq_memory(pd)
    context.resize_cq(cq, 32, struct.pack("<Q", other))
    same(outcome(lambda: context.dereg_mr(ring_mr)), "ok")
    same(outcome(lambda: context.dereg_mr(other_mr)), "EBUSY")
    context.destroy_qp(qp)
    same(outcome(lambda: context.dereg_mr(rings_mr)), "ok")
    context.destroy_cq(cq)
    for mr in (other_mr, shadow_mr):
        same(outcome(lambda: context.dereg_mr(mr)), "ok")
    # A queue needs memory that nobody else uses.
    same(outcome(lambda: context.create_cq(64, struct.pack("<QQ", ring, shadow)))[0], "E")
    context.close()


@case("M-02: a process that ends with queues leaves nothing")
def _():
    for _ in range(5):
        context = Context()
        pd, _ = context.alloc_pd()
        cq = context.new_cq(pd)
        ring, _, _, _ = context.cq_memory(pd)
        context.resize_cq(cq, 32, struct.pack("<Q", ring))
        start, _ = context.qp_memory(pd)
        context.create_qp(pd, cq, start)
        context.close()


@case("the rate of a QP's packets can't be limited, and the state stays with it")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    start, _ = context.qp_memory(pd)
    qp, _ = context.create_qp(pd, context.new_cq(pd), start)
    to_init = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT
    refused(lambda: context.modify_qp(qp, to_init | IBV_QP_RATE_LIMIT, INIT), "EOPNOTSUPP")
    # It must still need what leads from RESET to INIT.
    refused(lambda: context.modify_qp(qp, IBV_QP_STATE, INIT), "EINVAL")
    same(outcome(lambda: context.modify_qp(qp, to_init, INIT)), "ok")
    context.close()


@case("Q-30: there are no shared receive queues")
def _():
    context = Context()
    pd, _ = context.alloc_pd()
    same(outcome(lambda: context.call(CREATE_SRQ, struct.pack("<QIIII", 0, pd, 8, 1, 0), 16, bytes(16), 8)), "EOPNOTSUPP")
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
        same(outcome(lambda: context.mcast(ATTACH_MCAST, qp, group)), "ok")
    same(outcome(lambda: context.mcast(ATTACH_MCAST, qps[8], group)), "ENOMEM", "the ninth:")
    same(outcome(lambda: context.mcast(ATTACH_MCAST, qps[8], other)), "ok", "another group:")
    context.mcast(ATTACH_MCAST, qps[0], group)
    context.mcast(DETACH_MCAST, qps[3], group)
    same(outcome(lambda: context.mcast(ATTACH_MCAST, qps[8], group)), "ok", "the ninth in a free place:")
    same(outcome(lambda: context.mcast(DETACH_MCAST, qps[3], group)), "EINVAL", "one that is no member:")
    same(outcome(lambda: context.mcast(ATTACH_MCAST, qps[1], bytes(10) + b"\xff\xff\x0a\0\0\1")), "EINVAL", "no group:")
    for qp in (*qps[:3], *qps[4:]):
        same(outcome(lambda: context.mcast(DETACH_MCAST, qp, group)), "ok")
    same(outcome(lambda: context.mcast(DETACH_MCAST, qps[8], other)), "ok")
    # Some members are left when the process ends.
    for qp in qps[:4]:
        context.mcast(ATTACH_MCAST, qp, other)
    context.close()


sys.exit(run(DRIVER, sys.argv[3:]))
