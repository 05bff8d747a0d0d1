#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: verbs by their library's Python binding.

Prints TAP lines.
  users-verbs.py stock|rust DEVICE GID_INDEX PEER PEER_GID_INDEX
"""
import fcntl
import json
import mmap
import os
import struct
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.mr import MR, DmaBufMR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

import ends
from harness import ALL, MODIFY_QP, case, fail_command, outcome, poll, run, same, status, statuses

DRIVER, NAME, GID, PEER, PEER_GID = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])


class End(ends.End):
    """One end of a connection on the first port."""

    def __init__(self, name=NAME, gid=GID, **more):
        super().__init__(name, gid, **more)


def pair(access=ALL, depth=16, cqe=64, **more):
    a, b = End(depth=depth, cqe=cqe), End(depth=depth, cqe=cqe)
    a.connect(b, **more)
    b.connect(a, access=access, **more)
    return a, b


@case("SEND arrives")
def _():
    a, b = pair()
    b.recv(100, wr_id=7, offset=1000)
    a.mr.write("x" * 50, 50)
    a.send(50, wr_id=3)
    same([(wc.wr_id, status(wc)) for wc in poll(a.scq)], [(3, "SUCCESS")])
    same([(wc.wr_id, status(wc), wc.byte_len) for wc in poll(b.rcq)], [(7, "SUCCESS", 50)])
    same(b.mr.read(50, 1000), b"x" * 50)


@case("Q-09: no receive posted gives RNR_RETRY_EXC_ERR, flush after")
def _():
    a, _b = pair(rnr=0)
    a.send(50)
    a.send(50)
    first, second = poll(a.scq, 2)
    # rdma-core 56 knows no name for the device's code 11, which is this one.
    same(first.vendor_err & 0xffff, 11)
    same(status(first) in ("RNR_RETRY_EXC_ERR", "FATAL_ERR"), True)
    same(status(second), "WR_FLUSH_ERR")


@case("Q-09: a silent peer gives RETRY_EXC_ERR, flush after")
def _():
    a, b = pair(retry=1)
    b.to(e.IBV_QPS_ERR)
    a.send(50)
    a.send(5)
    same(statuses(a.scq, 2), ["RETRY_EXC_ERR", "WR_FLUSH_ERR"])


@case("Q-09: a wrong rkey gives REM_ACCESS_ERR, flush after and at the peer")
def _():
    a, b = pair()
    b.recv(100)
    a.send(50, opcode=e.IBV_WR_RDMA_WRITE, remote=(b.mr.rkey ^ 0x55, b.mr.buf))
    a.send(5)
    same(statuses(a.scq, 2), ["REM_ACCESS_ERR", "WR_FLUSH_ERR"])
    same(statuses(b.rcq), ["WR_FLUSH_ERR"])


@case("Q-09: a READ beyond the region gives REM_ACCESS_ERR")
def _():
    a, b = pair()
    a.send(100, opcode=e.IBV_WR_RDMA_READ, remote=(b.mr.rkey, b.mr.buf + 65500))
    same(statuses(a.scq), ["REM_ACCESS_ERR"])


@case("Q-09: a receive too short gives LOC_LEN_ERR, REM_INV_REQ_ERR at the sender")
def _():
    a, b = pair()
    b.recv(10)
    b.recv(10)
    a.send(50)
    same(statuses(a.scq), ["REM_INV_REQ_ERR"])
    same(statuses(b.rcq, 2), ["LOC_LEN_ERR", "WR_FLUSH_ERR"])


@case("Q-09: a wrong lkey gives LOC_PROT_ERR, flush after")
def _():
    a, b = pair()
    b.recv(100)
    a.send(50, lkey=a.mr.lkey ^ 0x77)
    a.send(50)
    same(statuses(a.scq, 2), ["LOC_PROT_ERR", "WR_FLUSH_ERR"])


@case("Q-01: one flush for each receive when the QP goes to ERR")
def _():
    _a, b = pair()
    for n in range(12):
        b.recv(100, wr_id=n)
    b.to(e.IBV_QPS_ERR)
    same([(wc.wr_id, status(wc)) for wc in poll(b.rcq, 12)], [(n, "WR_FLUSH_ERR") for n in range(12)])
    same(statuses(b.rcq, 1, 0.3), [])


@case("Q-03: what is posted in ERR is flushed")
def _():
    _a, b = pair()
    b.to(e.IBV_QPS_ERR)
    b.send(5, wr_id=1)
    same([(wc.wr_id, status(wc)) for wc in poll(b.scq, 1, 3)], [(1, "WR_FLUSH_ERR")])
    b.recv(5, wr_id=2)
    same([(wc.wr_id, status(wc)) for wc in poll(b.rcq, 1, 3)], [(2, "WR_FLUSH_ERR")])


@case("Q-11: RESET of a fresh QP changes nothing, it comes up all the same", stock="INIT is refused after RESET")
def _():
    a, b = End(), End()
    for end in (a, b):
        end.to(e.IBV_QPS_RESET)
        same(end.state(), e.IBV_QPS_RESET)
    a.connect(b)
    b.connect(a)
    b.recv(10)
    a.send(10)
    same(statuses(b.rcq), ["SUCCESS"])


@case("Q-11: RESET of a QP in ERR works or is refused", stock="it succeeds, INIT is refused after it")
def _():
    a, b = pair()
    a.to(e.IBV_QPS_ERR)
    try:
        a.to(e.IBV_QPS_RESET)
    except PyverbsRDMAError:
        same(a.state(), e.IBV_QPS_ERR)
        return
    a.connect(b)


@case("Q-12: a QP that the device has broken is in ERR, and stays so")
def _():
    a, b = pair()
    a.send(50, opcode=e.IBV_WR_RDMA_WRITE, remote=(b.mr.rkey ^ 0x55, b.mr.buf))
    same(statuses(a.scq), ["REM_ACCESS_ERR"])
    a.to(e.IBV_QPS_ERR)
    same(a.state(), e.IBV_QPS_ERR)
    b.to(e.IBV_QPS_ERR)
    same(b.state(), e.IBV_QPS_ERR)


@case("Q-15: a change of state that the device refuses changes nothing", stock="the query says RTS")
def _():
    a, b = End(), End()
    at = a.attributes(b)
    a.qp.to_rtr(at)
    fail_command(MODIFY_QP)
    at.qp_state = e.IBV_QPS_RTS
    mask = e.IBV_QP_STATE | e.IBV_QP_TIMEOUT | e.IBV_QP_RETRY_CNT | e.IBV_QP_RNR_RETRY | e.IBV_QP_SQ_PSN | e.IBV_QP_MAX_QP_RD_ATOMIC
    try:
        a.qp.modify(at, mask)
    except PyverbsRDMAError:
        pass
    else:
        raise AssertionError("it succeeded")
    same(a.state(), e.IBV_QPS_RTR)
    a.qp.modify(at, mask)
    same(a.state(), e.IBV_QPS_RTS)


@case("Q-16: a QP without REMOTE_WRITE refuses writes to a region that has it", stock="the right stays on")
def _():
    a, b = pair(access=0)
    a.send(50, opcode=e.IBV_WR_RDMA_WRITE, remote=(b.mr.rkey, b.mr.buf))
    same(statuses(a.scq), ["REM_ACCESS_ERR"])


@case("SQD drains the send queue, RTS goes on", never="it flushes a QP in SQD, which the device need not bear")
def _():
    a, b = pair()
    b.recv(10)
    b.recv(10)
    a.send(10)
    a.to(e.IBV_QPS_SQD)
    same(a.state(), e.IBV_QPS_SQD)
    a.to(e.IBV_QPS_RTS)
    a.send(10)
    same(statuses(a.scq, 2), ["SUCCESS", "SUCCESS"])


def writes(a, b, ids):
    for wr_id in ids:
        a.send(8, wr_id=wr_id, opcode=e.IBV_WR_RDMA_WRITE, remote=(b.mr.rkey, b.mr.buf))


@case("P-08: a CQ with unpolled entries shrinks and grows, none is lost")
def _():
    a, b = pair(depth=120, cqe=128)
    writes(a, b, range(100))
    time.sleep(0.5)
    a.scq.resize(8)
    same([wc.wr_id for wc in poll(a.scq, 100)], list(range(100)))
    writes(a, b, range(200, 206))
    same([wc.wr_id for wc in poll(a.scq, 6)], list(range(200, 206)))
    for size in (30, 8, 256, 100):
        a.scq.resize(size)
        writes(a, b, range(5))
        same([wc.wr_id for wc in poll(a.scq, 5)], list(range(5)))


@case("a CQ can't be resized beyond the device's limit")
def _():
    a, b = pair()
    limit = a.context.query_device().max_cqe
    same(outcome(lambda: a.scq.resize(limit + 1)), "EINVAL")
    writes(a, b, range(3))
    same([wc.wr_id for wc in poll(a.scq, 3)], [0, 1, 2])


@case("a CQ can be resized up to the device's limit", stock="half of it is the limit")
def _():
    a, b = pair()
    a.scq.resize(a.context.query_device().max_cqe)
    writes(a, b, range(3))
    same([wc.wr_id for wc in poll(a.scq, 3)], [0, 1, 2])


def write_to(a, mr, address, text):
    """Writes text from a to a remote address; the status."""
    a.mr.write(text, len(text))
    a.send(len(text), opcode=e.IBV_WR_RDMA_WRITE, remote=(mr.rkey, address))
    return statuses(a.scq)[0]


def length_of(mr):
    """Bytes of a region, as the kernel lists it."""
    listed = json.loads(subprocess.run(["rdma", "-j", "resource", "show", "mr"], check=True, capture_output=True).stdout)
    return [entry["mrlen"] for entry in listed if int(entry["rkey"], 16) == mr.rkey]


@case("rereg: another access is what counts")
def _():
    a, b = pair()
    b.mr.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ)
    a.send(8, opcode=e.IBV_WR_RDMA_READ, remote=(b.mr.rkey, b.mr.buf))
    same(statuses(a.scq), ["SUCCESS"])
    same(write_to(a, b.mr, b.mr.buf, "abc"), "REM_ACCESS_ERR")


@case("rereg: other memory, under the region's present key")
def _():
    a, b = pair()
    other = MR(b.pd, 2 << 20, ALL)
    b.mr.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION, None, other.buf, 2 << 20, 0)
    same(write_to(a, b.mr, other.buf + 1000000, "moved"), "SUCCESS")
    same(other.read(5, 1000000), b"moved")
    same(length_of(b.mr), [2 << 20], "moved:")
    b.mr.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0, e.IBV_ACCESS_LOCAL_WRITE)
    same(length_of(b.mr), [2 << 20], "with another access:")


@case("rereg: in another domain the QP may not use it")
def _():
    a, b = pair()
    domain = PD(a.context)
    mr = MR(a.pd, 4096, ALL)
    mr.rereg(e.IBV_REREG_MR_CHANGE_PD, domain, 0, 0, 0)
    b.recv(10)
    a.send(10, mr=mr)
    same(statuses(a.scq), ["LOC_PROT_ERR"])
    mr.close()


@case("rereg that fails leaves the region as it was", stock="the registration is gone")
def _():
    a, b = pair()
    key, start = b.mr.rkey, b.mr.buf
    for address, length in ((0x1000, 4096), (b.mr.buf, 0)):
        try:
            b.mr.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION, None, address, length, 0)
        except PyverbsRDMAError:
            continue
        raise AssertionError("it succeeded")
    a.send(5, opcode=e.IBV_WR_RDMA_READ, remote=(key, start))
    same(statuses(a.scq), ["SUCCESS"])


@case("M-01: a region of no bytes is refused")
def _():
    a = End()
    same(outcome(lambda: MR(a.pd, 0, ALL)), "EINVAL")


@case("a DMA buffer is registered, written by the peer, and deregistered")
def _():
    a, b = pair()
    length = 1 << 20
    memory = os.memfd_create("buffer", os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, length)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    device = os.open("/dev/udmabuf", os.O_RDWR)
    # UDMABUF_CREATE of struct udmabuf_create
    dmabuf = fcntl.ioctl(device, 0x40187542, bytearray(struct.pack("IIQQ", memory, 1, 0, length)), True)
    mr = DmaBufMR(b.pd, length - 8192, ALL, dmabuf, 4096)
    # The region's addresses are offsets into the buffer.
    same(write_to(a, mr, 4096 + 300000, "by dma"), "SUCCESS")
    view = mmap.mmap(memory, length)
    same(view[304096:304102], b"by dma")
    a.send(8, opcode=e.IBV_WR_RDMA_WRITE, remote=(mr.rkey, length - 4096))
    same(statuses(a.scq), ["REM_ACCESS_ERR"])
    mr.close()
    view.close()
    for fd in (dmabuf, device, memory):
        os.close(fd)


sys.exit(run(DRIVER))
