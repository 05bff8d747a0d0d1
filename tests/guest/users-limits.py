#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: what a user may ask for, at 0, 1, the limit, one more, and where signed and
unsigned numbers of 32 bits end. Spoken by hand, since the library has limits of its own; the memory of
queues is large enough not to decide. TAP lines.
  users-limits.py stock|rust DEVICE
"""
import struct
import sys

import pyverbs.device

import uverbs
from harness import PAGE, outcome, refused, run, same
from harness import tidy_case as case

DRIVER, NAME = sys.argv[1:3]
LARGE = (1 << 31, (1 << 32) - 1)
# Elements and bytes of inline data of a work request, and entries of a CQ's ring: irdma-abi.h tells
# them to the library.
MAX_SGE, MAX_INLINE, MAX_RING = 13, 101, 0x1ffffe


def limits():
    return pyverbs.device.Context(name=NAME).query_device()


class Queues(uverbs.Context):
    """The device, with memory for rings of twice the largest size of a QP."""
    PAGES = 2 * 32768 * 32 // PAGE

    def __init__(self, raw=1):
        super().__init__(NAME, False)
        self.get_context(struct.pack("<IB3xQ", 0, 5, raw), 80)
        self.pd, _ = self.alloc_pd()
        self.cq = self.new_cq(self.pd)
        self.rings = self.memory(2 * self.PAGES + 1)

    def one(self, **asked):
        """Makes a queue pair and takes it away; the sizes that it had."""
        mr = self.reg_qp_rings(self.pd, self.rings, self.PAGES, self.PAGES)
        try:
            qp, _ = self.create_qp(self.pd, self.cq, self.rings, **asked)
            self.destroy_qp(qp)
        finally:
            self.dereg_mr(mr)
        return self.granted

    def check(self, name, most, **others):
        """Up to `most` is granted, and no more."""
        place = ("send", "recv", "sge", "recv_sge", "inline").index(name)
        for number in (0, 1, most):
            same(self.one(**{name: number}, **others)[place] >= number, True, f"{name} {number} of {others} is granted:")
        for number in (most + 1, *LARGE):
            refused(lambda: self.one(**{name: number}, **others), "EINVAL", f"{name} {number} of {others}:")


@case("Q-19: work requests of a QP, up to the largest rings and no more")
def _():
    queues = Queues()
    most = limits().max_qp_wr
    same(all(granted >= most for granted in queues.one(send=most, recv=most, sge=MAX_SGE)[:2]), True, "what the device tells:")
    # 258 quanta of a send ring stay free, and one of a receive ring.
    queues.check("send", most, sge=MAX_SGE)
    queues.check("send", 32768 - 258, sge=0)
    queues.check("recv", 32767 // 8, sge=MAX_SGE)
    queues.check("recv", 32767, sge=1)
    queues.close()


@case("Q-19: elements and inline data of a QP's work requests, up to the limit and no more")
def _():
    queues = Queues()
    told = limits()
    same((told.max_sge, told.max_qp_wr), (MAX_SGE, 4063))
    queues.check("sge", MAX_SGE, recv_sge=1)
    queues.check("recv_sge", MAX_SGE)
    queues.check("inline", MAX_INLINE)
    queues.close()


@case("Q-19: rings that an older library has made are of a size that the device has",
      never="it takes what the library says")
def _():
    queues = Queues(raw=0)
    for name, most in (("send", 32768 // 2), ("recv", 32768)):
        same(outcome(lambda: queues.one(**{"send": 512, "recv": 64, name: most})), "ok", f"{name} {most}:")
        for number in (0, 1, most + 1, *LARGE):
            refused(lambda: queues.one(**{"send": 512, "recv": 64, name: number}), "EINVAL", f"{name} {number}:")
    queues.close()


@case("P-07: entries of a CQ, up to the limit and no more", stock="it knows no limit, and takes 2^31 for less than 4")
def _():
    context = uverbs.Context(NAME)
    pd, _ = context.alloc_pd()
    pages = MAX_RING * 32 // PAGE + 2
    ring, shadow = context.memory(pages), context.memory(1)

    def one(cqe):
        mrs = [context.reg_cq_ring(pd, ring, pages), context.reg_cq_ring(pd, shadow, 1)]
        try:
            cq, answer = context.create_cq(cqe, struct.pack("<QQ", ring, shadow))
            context.destroy_cq(cq)
        finally:
            for mr in mrs:
                context.dereg_mr(mr)
        return struct.unpack("<II", answer)[1]
    for cqe in (1, limits().max_cqe, MAX_RING):
        same(one(cqe) >= cqe, True, f"{cqe} entries are there:")
    for cqe in (0, MAX_RING + 1, *LARGE):
        refused(lambda: one(cqe), "EINVAL", f"{cqe} entries:")
    context.close()


@case("P-07: entries of a CQ that is resized, up to the limit and no more",
      stock="it takes twice the entries of the library for completions")
def _():
    context = uverbs.Context(NAME)
    pd, _ = context.alloc_pd()
    pages = MAX_RING * 32 // PAGE + 2
    cq = context.new_cq(pd)
    rings = [context.memory(pages) for _ in range(2)]
    mrs = []

    def one(cqe):
        """Takes the ring that isn't used."""
        ring = rings[len(mrs) % 2]
        mr = context.reg_cq_ring(pd, ring, pages)
        try:
            context.resize_cq(cq, cqe, struct.pack("<Q", ring))
        except OSError:
            context.dereg_mr(mr)
            raise
        if mrs:
            context.dereg_mr(mrs[-1])
        mrs.append(mr)
    for cqe in (1, MAX_RING):
        same(outcome(lambda: one(cqe)), "ok", f"{cqe} entries:")
    for cqe in (0, MAX_RING + 1, *LARGE):
        refused(lambda: one(cqe), "EINVAL", f"{cqe} entries:")
    context.close()


@case("M-01: bytes of a region, from 1 on and not beyond the limit")
def _():
    context = uverbs.Context(NAME)
    pd, _ = context.alloc_pd()
    pages = 16384
    start = context.memory(pages)
    largest = limits().max_mr_size
    same(largest, 1 << 45)

    def one(length):
        context.dereg_mr(context.reg_mr(pd, start, length, bytes(8)))
    for length in (1, PAGE - 1, PAGE + 1, pages * PAGE):
        same(outcome(lambda: one(length)), "ok", f"{length} bytes:")
    # So much the core can count the pages of; they are not there.
    refused(lambda: one((1 << 44) - PAGE), "EFAULT", "below the limit:")
    for length in (0, largest + 1, 1 << 63, (1 << 64) - 1):
        refused(lambda: one(length), "EINVAL", f"{length} bytes:")
    context.close()


@case("memory that a refused queue was to have can be another queue's", stock="it is lost for queues")
def _():
    context = uverbs.Context(NAME)
    pd, _ = context.alloc_pd()
    ring, shadow, _, _ = context.cq_memory(pd)
    for cqe in (129, 1 << 31):
        refused(lambda: context.create_cq(cqe, struct.pack("<QQ", ring, shadow)), "EINVAL", f"{cqe} entries:")
    cq, _ = context.create_cq(64, struct.pack("<QQ", ring, shadow))
    other = context.memory(1)
    context.reg_cq_ring(pd, other, 1)
    for cqe in (129, 1 << 31):
        refused(lambda: context.resize_cq(cq, cqe, struct.pack("<Q", other)), "EINVAL", f"resized to {cqe}:")
    context.resize_cq(cq, 128, struct.pack("<Q", other))
    start, _ = context.qp_memory(pd)
    for send in (1000, 1 << 31):
        refused(lambda: context.create_qp(pd, cq, start, send=send), "EINVAL", f"{send} work requests:")
    context.create_qp(pd, cq, start)
    # But it is nobody else's while it is used.
    refused(lambda: context.create_qp(pd, cq, start), "EINVAL", "a second queue pair:")
    context.close()


sys.exit(run(DRIVER))
