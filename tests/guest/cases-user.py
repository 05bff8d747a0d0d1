#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: a process with the first device open.
  cases-user.py traffic|many|mmap|flood
  cases-user.py hold|busy|steps FIFO
"""
import ctypes
import mmap
import os
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

import uverbs
from harness import PAGE, devices

DEVICE = devices()[0]


class End:
    def __init__(self, context, qps=1, channel=None):
        self.context = context
        self.pd = PD(context)
        self.cq = CQ(context, 64, None, channel)
        self.mr = MR(self.pd, PAGE, 7)
        cap = QPCap(max_send_wr=8, max_recv_wr=8)
        self.qps = [QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, sq_sig_all=1, cap=cap)) for _ in range(qps)]

    def connect(self, peer, traffic_class=0, gid=0):
        at = QPAttr(port_num=1)
        at.qp_access_flags, at.path_mtu, at.dest_qp_num = 7, e.IBV_MTU_1024, peer.qps[0].qp_num
        at.min_rnr_timer, at.timeout, at.retry_cnt, at.rnr_retry = 12, 14, 7, 7
        route = GlobalRoute(dgid=self.context.query_gid(1, gid), sgid_index=gid, hop_limit=64, traffic_class=traffic_class)
        at.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qps[0].to_rts(at)

    def send(self):
        self.qps[0].post_send(SendWR(wr_id=1, opcode=e.IBV_WR_SEND, num_sge=1, send_flags=e.IBV_SEND_SIGNALED,
                                     sg=[SGE(self.mr.buf, 100, self.mr.lkey)]))

    def recv(self):
        self.qps[0].post_recv(RecvWR(wr_id=2, num_sge=1, sg=[SGE(self.mr.buf, PAGE, self.mr.lkey)]))


def pair(**path):
    context = Context(name=DEVICE)
    a, b = End(context), End(context)
    a.connect(b, **path)
    b.connect(a, **path)
    return a, b


def await_one(cq):
    for _ in range(2000):
        count, wcs = cq.poll(1)
        if count:
            return wcs[0]
        time.sleep(0.002)
    raise AssertionError("no completion")


def traffic():
    a, b = pair()
    b.recv()
    a.send()
    for cq in (a.cq, b.cq):
        wc = await_one(cq)
        assert wc.status == e.IBV_WC_SUCCESS, wc.status


def many():
    end = End(Context(name=DEVICE), 500)
    print("ready", len(end.qps), flush=True)
    time.sleep(1000)


def flood():
    """Many events of completions, until the device is gone."""
    context = Context(name=DEVICE)
    channel = CompChannel(context)
    ends = []
    for _ in range(8):
        pair_of = [End(context, channel=channel), End(context, channel=channel)]
        pair_of[0].connect(pair_of[1])
        pair_of[1].connect(pair_of[0])
        ends.append(pair_of)
    print("ready", flush=True)
    while True:
        for a, b in ends:
            a.cq.req_notify()
            b.cq.req_notify()
            b.recv()
            a.send()
            a.cq.poll(4)
            b.cq.poll(4)


def busy(fifo):
    a, b = pair()
    b.recv()
    a.send()
    await_one(a.cq)
    await_one(b.cq)
    time.sleep(1.5)
    print("ready", flush=True)
    with open(fifo, encoding="ascii") as f:
        f.readline()


def steps(fifo):
    # An IPv4 address stays when the interface goes down. By their type of
    # service the second ones have priority 6.
    context = Context(name=DEVICE)
    gid = next(i for i in range(32) if context.query_gid(1, i).gid.startswith("0000:0000:0000:0000:0000:ffff"))
    pairs = [pair(gid=gid), pair(gid=gid, traffic_class=0x10)]
    print("ready", flush=True)
    with open(fifo, encoding="ascii") as f:
        for number, _ in enumerate(f, 1):
            for a, b in pairs:
                b.recv()
                a.send()
                for cq in (a.cq, b.cq):
                    wc = await_one(cq)
                    assert wc.status == e.IBV_WC_SUCCESS, wc.status
            print("step", number, flush=True)


def refused(f, what):
    try:
        f()
    except (PyverbsRDMAError, OSError) as error:
        print(f"{what}: {error}")
        return
    raise AssertionError(f"{what} succeeded")


def hold(fifo):
    a, b = pair()
    b.recv()
    a.send()
    await_one(a.cq)
    print("ready", flush=True)
    with open(fifo, encoding="ascii") as f:
        f.readline()
    # The doorbell page is nobody's now, but it can be written.
    a.send()
    time.sleep(0.2)
    assert a.cq.poll(1)[0] == 0, "a completion out of nowhere"
    refused(lambda: PD(a.context), "a new domain")
    refused(lambda: a.qps[0].modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE), "a change of state")
    print("done")
    sys.stdout.flush()
    os._exit(0)


def context_of(context):
    """Opens the device by hand (irdma-abi.h); the offset of the doorbell page."""
    return struct.unpack_from("<Q", context.get_context(struct.pack("<IB3xQ", 0, 5, 0), 80), 24)[0]


def maps():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    write, shared = mmap.PROT_WRITE, mmap.MAP_SHARED

    def attempt(fd, offset, length=PAGE, prot=write, flags=shared):
        address = libc.mmap(None, length, prot, flags, fd, offset)
        if address == ctypes.c_void_p(-1).value:
            return None
        return address

    def refuse(what, *args):
        assert attempt(*args) is None, f"{what} was mapped"

    mine, foreigner = uverbs.Context(DEVICE, False), uverbs.Context(DEVICE, False)
    fd, other = mine.fd, foreigner.fd
    refuse("a page without a context", fd, 0)
    key, foreign = context_of(mine), context_of(foreigner)
    assert attempt(other, foreign) is not None, "the other's page was not mapped"
    page = attempt(fd, key)
    assert page is not None, "the doorbell page was not mapped"
    refuse("two pages", fd, key, 2 * PAGE)
    refuse("many pages", fd, key, 1 << 20)
    refuse("a private page", fd, key, PAGE, write, mmap.MAP_PRIVATE)
    refuse("an executable page", fd, key, PAGE, write | mmap.PROT_EXEC)
    for offset in (*range(1, 4096), 1 << 20, 1 << 30, (1 << 51) - 1):
        if offset * PAGE != key:
            refuse(f"offset {offset} pages", fd, offset * PAGE)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert libc.mprotect(page, PAGE, write | mmap.PROT_EXEC) != 0, "the page was made executable"
    # A second time is as good as the first.
    again = attempt(fd, key)
    assert again is not None, "the doorbell page was not mapped again"
    libc.munmap(again, PAGE)
    child = os.fork()
    if not child:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "a child that has the page"
    # The mapping outlives the file descriptor, and nobody minds.
    mine.close()
    libc.munmap(page, PAGE)
    foreigner.close()


{"traffic": traffic, "many": many, "mmap": maps, "flood": flood, "hold": lambda: hold(sys.argv[2]), "busy": lambda: busy(sys.argv[2]),
 "steps": lambda: steps(sys.argv[2])}[sys.argv[1]]()
