# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: ends of connections, by the library's Python binding."""
import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from harness import ALL


class End:
    """One end of a connection."""

    def __init__(self, name, gid, kind=e.IBV_QPT_RC, depth=16, cqe=64):
        self.gid = gid
        self.context = Context(name=name)
        self.pd = PD(self.context)
        self.scq = CQ(self.context, cqe)
        self.rcq = CQ(self.context, cqe)
        self.mr = MR(self.pd, 65536, ALL)
        self.qp = QP(self.pd, QPInitAttr(
            qp_type=kind, scq=self.scq, rcq=self.rcq, sq_sig_all=1,
            cap=QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=2, max_recv_sge=2, max_inline_data=48)))

    def route(self, other, **more):
        route = GlobalRoute(dgid=other.context.query_gid(1, other.gid), sgid_index=self.gid, hop_limit=64)
        return AHAttr(gr=route, is_global=1, port_num=1, **more)

    def attributes(self, other, access=ALL, retry=7, rnr=7, timeout=12):
        at = QPAttr(port_num=1)
        at.qp_access_flags = access
        at.path_mtu = e.IBV_MTU_1024
        at.dest_qp_num = other.qp.qp_num
        at.rq_psn = at.sq_psn = 5
        at.max_rd_atomic = at.max_dest_rd_atomic = 4
        at.min_rnr_timer = 12
        at.timeout = timeout
        at.retry_cnt = retry
        at.rnr_retry = rnr
        at.ah_attr = self.route(other)
        return at

    def connect(self, other, **more):
        self.qp.to_rts(self.attributes(other, **more))

    def send(self, length, wr_id=0, mr=None, lkey=None, offset=0, opcode=e.IBV_WR_SEND, remote=None, flags=e.IBV_SEND_SIGNALED):
        mr = mr or self.mr
        wr = SendWR(wr_id=wr_id, opcode=opcode, num_sge=1, send_flags=flags,
                    sg=[SGE(mr.buf + offset, length, mr.lkey if lkey is None else lkey)])
        if remote:
            wr.set_wr_rdma(*remote)
        self.qp.post_send(wr)

    def recv(self, length, wr_id=0, offset=0):
        self.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=[SGE(self.mr.buf + offset, length, self.mr.lkey)]))

    def to(self, state):
        self.qp.modify(QPAttr(qp_state=state), e.IBV_QP_STATE)

    def state(self):
        return self.qp.query(e.IBV_QP_STATE)[0].qp_state
