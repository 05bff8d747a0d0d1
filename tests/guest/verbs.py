# SPDX-License-Identifier: GPL-2.0
"""The verbs that the workloads of scripts/parity use, in a fixed order.

Nothing here may depend on chance: queues fit a page, so that they never need a
page list; longer buffers always need one, as their pages are touched out of
order; the link-local addresses of the ports need no neighbour discovery.
"""

import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute, AH
from pyverbs.cq import CompChannel, CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from harness import PAGE, Scattered, devices

GID = 0
QKEY = 0x11111111
LOCAL = e.IBV_ACCESS_LOCAL_WRITE
REMOTE = LOCAL | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE


class Port:
    """A device with what a queue pair of it needs."""

    def __init__(self, name, qp_type, pages=4, depth=8):
        self.context = Context(name=name)
        self.gid = self.context.query_gid(1, GID)
        self.pd = PD(self.context)
        self.buffer = Scattered(pages)
        self.mr = MR(self.pd, self.buffer.length, REMOTE, address=self.buffer.address)
        self.send_cq = CQ(self.context, 2 * depth)
        self.receive_cq = CQ(self.context, 2 * depth)
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=2, max_recv_sge=2, max_inline_data=32)
        init = QPInitAttr(qp_type=qp_type, scq=self.send_cq, rcq=self.receive_cq, cap=cap, sq_sig_all=0)
        attr = QPAttr(port_num=1)
        attr.pkey_index = 0
        if qp_type == e.IBV_QPT_UD:
            attr.qkey = QKEY
        else:
            attr.qp_access_flags = REMOTE
        self.qp = QP(self.pd, init)
        self.qp.to_init(attr)

    def route(self, peer):
        grh = GlobalRoute(dgid=peer.gid, sgid_index=GID, hop_limit=64)
        return AHAttr(gr=grh, is_global=1, port_num=1)

    def connect(self, peer):
        attr = QPAttr(port_num=1)
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = peer.qp.qp_num
        attr.rq_psn = attr.sq_psn = 0x100
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer = 12
        attr.timeout = 14
        attr.retry_cnt = attr.rnr_retry = 7
        attr.ah_attr = self.route(peer)
        attr.qp_access_flags = REMOTE
        self.qp.to_rts(attr)

    def start(self):
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        attr.sq_psn = 0x100
        self.qp.to_rts(attr)

    def piece(self, offset, length):
        return SGE(self.buffer.address + offset, length, self.mr.lkey)

    def receive(self, wr_id, offset, length):
        self.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=[self.piece(offset, length)]))

    def send(self, wr_id, opcode, pieces, flags=e.IBV_SEND_SIGNALED, remote=None, imm=None, ah=None, peer=None):
        wr = SendWR(wr_id=wr_id, opcode=opcode, num_sge=len(pieces), sg=pieces or None, send_flags=flags)
        if imm is not None:
            wr.imm_data = imm
        if remote is not None:
            wr.set_wr_rdma(*remote)
        if ah is not None:
            wr.set_wr_ud(ah, peer.qp.qp_num, QKEY)
        self.qp.post_send(wr)

    def close(self):
        for thing in (self.qp, self.send_cq, self.receive_cq, self.mr, self.pd, self.context):
            thing.close()


def completed(cq, wr_id, length=None):
    """Waits for the completion of `wr_id`, the only one."""
    for _ in range(1_000_000):
        count, found = cq.poll()
        if count:
            wc = found[0]
            assert wc.status == e.IBV_WC_SUCCESS, f"work request {wc.wr_id}: status {wc.status}"
            assert wc.wr_id == wr_id, f"work request {wc.wr_id}, not {wr_id}"
            assert length is None or wc.byte_len == length, f"{wc.byte_len} bytes, not {length}"
            return
    raise SystemExit(f"no completion of work request {wr_id}")


def ud():
    a, b = (Port(name, e.IBV_QPT_UD) for name in devices())
    a.start()
    b.start()
    ah = AH(a.pd, attr=a.route(b))
    for number, length in enumerate((1, 64, 1000)):
        b.receive(number, 0, 40 + length)
        a.send(number, e.IBV_WR_SEND, [a.piece(0, length)], ah=ah, peer=b)
        completed(b.receive_cq, number, 40 + length)
        completed(a.send_cq, number)
    b.receive(9, 0, 2048)
    a.send(9, e.IBV_WR_SEND_WITH_IMM, [a.piece(0, 100), a.piece(512, 60)], imm=0x1234, ah=ah, peer=b)
    completed(b.receive_cq, 9, 200)
    completed(a.send_cq, 9)
    ah.close()
    a.close()
    b.close()


def rc():
    a, b = (Port(name, e.IBV_QPT_RC) for name in devices())
    a.connect(b)
    b.connect(a)
    remote = (b.mr.rkey, b.buffer.address)
    far = (b.mr.rkey, b.buffer.address + 2 * PAGE)
    a.buffer.memory[:64] = bytes(range(64))
    for number, length in enumerate((1, 64, 3000)):
        b.receive(number, PAGE, PAGE)
        a.send(number, e.IBV_WR_SEND, [a.piece(0, length)])
        completed(b.receive_cq, number, length)
        completed(a.send_cq, number)
    b.receive(10, PAGE, PAGE)
    inline = e.IBV_SEND_SIGNALED | e.IBV_SEND_INLINE
    a.send(10, e.IBV_WR_SEND, [a.piece(0, 20)], flags=inline)
    completed(b.receive_cq, 10, 20)
    completed(a.send_cq, 10)
    b.receive(11, PAGE, PAGE)
    a.send(11, e.IBV_WR_SEND_WITH_IMM, [a.piece(0, 10), a.piece(32, 10)], imm=0x1234)
    completed(b.receive_cq, 11, 20)
    completed(a.send_cq, 11)
    a.send(12, e.IBV_WR_RDMA_WRITE, [a.piece(0, 2048)], remote=remote)
    completed(a.send_cq, 12)
    b.receive(13, PAGE, PAGE)
    a.send(13, e.IBV_WR_RDMA_WRITE_WITH_IMM, [a.piece(0, 64)], remote=far, imm=0x5678)
    completed(b.receive_cq, 13)
    completed(a.send_cq, 13)
    a.send(14, e.IBV_WR_RDMA_READ, [a.piece(3 * PAGE, 2048)], remote=remote)
    completed(a.send_cq, 14)
    assert a.buffer.memory[3 * PAGE : 3 * PAGE + 64] == bytes(range(64)), "what was written is not read back"
    a.send(15, e.IBV_WR_SEND, [a.piece(0, 20)], flags=e.IBV_SEND_SIGNALED | e.IBV_SEND_FENCE | e.IBV_SEND_SOLICITED)
    b.receive(15, PAGE, PAGE)
    completed(b.receive_cq, 15, 20)
    completed(a.send_cq, 15)
    a.close()
    b.close()


def mr():
    context = Context(name=devices()[0])
    pd = PD(context)
    for pages in (1, 3, 64, 600):
        buffer = Scattered(pages)
        for access in (0, LOCAL, REMOTE):
            MR(pd, buffer.length, access, address=buffer.address).close()
    buffer = Scattered(4)
    # Neither begin nor length at a page.
    MR(pd, 2 * PAGE, REMOTE, address=buffer.address + 100).close()
    regions = [MR(pd, PAGE, LOCAL, address=buffer.address + n * PAGE) for n in range(4)]
    for region in regions:
        region.close()
    pd.close()
    context.close()


def objects():
    context = Context(name=devices()[0])
    pds = [PD(context) for _ in range(2)]
    channel = CompChannel(context)
    queues = [CQ(context, 16), CQ(context, 32, None, channel), CQ(context, 50, None, channel, 1)]
    queues[1].req_notify(False)
    queues[2].req_notify(True)
    for pd in pds:
        for kind in (e.IBV_QPT_RC, e.IBV_QPT_UD):
            for wrs, sges, inline in ((1, 1, 0), (8, 2, 32), (16, 4, 96)):
                cap = QPCap(max_send_wr=wrs, max_recv_wr=wrs, max_send_sge=sges, max_recv_sge=sges, max_inline_data=inline)
                init = QPInitAttr(qp_type=kind, scq=queues[0], rcq=queues[1], cap=cap, sq_sig_all=1)
                qp = QP(pd, init)
                attr = QPAttr(port_num=1)
                attr.qkey = QKEY
                attr.qp_access_flags = LOCAL
                qp.to_init(attr)
                qp.close()
    peer = Context(name=devices()[1])
    for context_gid in (peer.query_gid(1, GID), context.query_gid(1, GID)):
        grh = GlobalRoute(dgid=context_gid, sgid_index=GID, hop_limit=64, traffic_class=8)
        AH(pds[0], attr=AHAttr(gr=grh, is_global=1, port_num=1)).close()
    peer.close()
    for thing in (*queues, channel, *pds, context):
        thing.close()


if __name__ == "__main__":
    {"objects": objects, "rc": rc, "ud": ud, "mr": mr}[sys.argv[1]]()
