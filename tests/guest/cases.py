#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: situations of which users have told, with what must hold. TAP lines.
  cases.py stock|rust [WORD_OF_A_NAME]...
"""
import ctypes
import mmap
import os
import random
import resource
import struct
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, DmaBufMR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from harness import ALL, CREATE_AH, CREATE_QP, FLUSH_WQES, PAGE, REG_MR, Scattered, \
    case, counted, devices, emulator, fail_command, fault, in_use, lend, outcome, poll, run, same, statuses, struck
from uverbs import REREG_MR

DRIVER = sys.argv[1]
GID = 0  # The link-local address, as RoCEv2.
QKEY = 0x11111111
A, B = devices()[:2]


class Port:
    """A device with what a queue pair of it needs."""

    def __init__(self, name=A, kind=e.IBV_QPT_RC, depth=16, cqe=64, sge=4, inline=101, qps=1):
        self.kind = kind
        self.context = Context(name=name)
        self.gid = self.context.query_gid(1, GID)
        self.pd = PD(self.context)
        self.mr = MR(self.pd, 1 << 20, ALL)
        self.scq = CQ(self.context, cqe)
        self.rcq = CQ(self.context, cqe)
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=sge, max_recv_sge=sge, max_inline_data=inline)
        self.qps = [QP(self.pd, QPInitAttr(qp_type=kind, scq=self.scq, rcq=self.rcq, cap=cap, sq_sig_all=1)) for _ in range(qps)]
        self.qp = self.qps[0]

    def route(self, peer):
        return AHAttr(gr=GlobalRoute(dgid=peer.gid, sgid_index=GID, hop_limit=64), is_global=1, port_num=1)

    def start(self, peer=None, access=ALL, mtu=e.IBV_MTU_1024):
        at = QPAttr(port_num=1)
        at.qkey = QKEY
        at.qp_access_flags, at.path_mtu, at.rq_psn, at.sq_psn = access, mtu, 5, 5
        at.max_rd_atomic = at.max_dest_rd_atomic = 4
        at.min_rnr_timer, at.timeout, at.retry_cnt, at.rnr_retry = 12, 14, 7, 7
        if self.kind == e.IBV_QPT_RC:
            at.dest_qp_num = peer.qp.qp_num
            at.ah_attr = self.route(peer)
        for qp in self.qps:
            qp.to_rts(at)

    def piece(self, offset, length):
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def recv(self, wr_id=0, offset=0, length=8192, qp=None):
        (qp or self.qp).post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=[self.piece(offset, length)]))

    def send(self, wr_id=0, pieces=(), opcode=e.IBV_WR_SEND, remote=None, imm=None, ah=None, peer=None, flags=0):
        wr = SendWR(wr_id=wr_id, opcode=opcode, num_sge=len(pieces), sg=list(pieces) or None, send_flags=flags | e.IBV_SEND_SIGNALED)
        if imm is not None:
            wr.imm_data = imm
        if remote:
            wr.set_wr_rdma(*remote)
        if ah:
            wr.set_wr_ud(ah, peer.qp.qp_num if isinstance(peer, Port) else peer, QKEY)
        self.qp.post_send(wr)

    def to(self, state):
        self.qp.modify(QPAttr(qp_state=state), e.IBV_QP_STATE)

    def close(self):
        for thing in (*self.qps, self.scq, self.rcq, self.mr, self.pd, self.context):
            thing.close()


def pair(b=A, **more):
    one, other = Port(A, **more), Port(b, **more)
    one.start(other)
    other.start(one)
    return one, other


@case("Q-06: a flush gives each request back once and in order, whatever lies between them")
def _():
    a, b = pair(depth=64, cqe=256)
    pieces = [a.piece(n * 64, 8) for n in range(4)]
    ids = []
    # Round the ring, with sizes that leave gaps before its end.
    for n in range(40):
        b.recv()
        a.send(n, pieces[:n % 4 + 1])
        same([wc.wr_id for wc in poll(a.scq)], [n])
        poll(b.rcq)
    b.to(e.IBV_QPS_ERR)
    for n in range(50):
        a.send(1000 + n, pieces[:(n * 7) % 4 + 1])
        ids.append(1000 + n)
    a.to(e.IBV_QPS_ERR)
    wcs = poll(a.scq, 50)
    same([wc.wr_id for wc in wcs], ids)
    same({e.ibv_wc_status(wc.status).name for wc in wcs} <= {"IBV_WC_WR_FLUSH_ERR", "IBV_WC_RETRY_EXC_ERR"}, True)
    same(poll(a.scq, 1, 0.3), [])
    a.close()
    b.close()


@case("Q-05: what is posted while the flush is on its way comes back too")
def _():
    a, b = pair()
    fault("cqp_command", FLUSH_WQES, {"delay": 50_000_000})
    a.to(e.IBV_QPS_ERR)
    a.send(7, [a.piece(0, 8)])
    same([(wc.wr_id, e.ibv_wc_status(wc.status).name) for wc in poll(a.scq, 1, 3)], [(7, "IBV_WC_WR_FLUSH_ERR")])
    a.close()
    b.close()


@case("Q-18: a queue pair that the device refuses leaves nothing")
def _():
    port = Port()
    before = in_use()
    fail_command(CREATE_QP, 30)
    for _ in range(30):
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=port.scq, rcq=port.rcq, cap=QPCap(max_send_wr=4, max_recv_wr=4))
        same(outcome(lambda: QP(port.pd, init)) != "ok", True, "it was made:")
    same(in_use(), before)
    port.close()


@case("Q-29, U-09: inline data of every size, in one piece and in several, arrives")
def _():
    a, b = pair()
    text = bytes(random.Random(1).randrange(256) for _ in range(101))
    a.mr.write(text, len(text))
    for length in (0, 1, 8, 9, 48, 51, 96, 101):
        for count in (1, 3):
            cuts = [length * n // count for n in range(count + 1)]
            pieces = [a.piece(s, t - s) for s, t in zip(cuts, cuts[1:])]
            b.recv()
            a.send(1, pieces, flags=e.IBV_SEND_INLINE)
            same(statuses(a.scq), ["SUCCESS"], f"{length} bytes:")
            same([wc.byte_len for wc in poll(b.rcq)], [length])
            same(b.mr.read(length, 0) if length else b"", text[:length], f"{length} bytes in {count}:")
    same(outcome(lambda: Port(inline=102)), "EINVAL", "102 bytes:")
    same(outcome(lambda: Port(inline=220)), "EINVAL", "220 bytes:")
    a.close()
    b.close()


@case("U-09: requests of no bytes: SEND, WRITE and READ")
def _():
    a, b = pair()
    nothing = [a.piece(0, 0)]
    b.recv()
    a.send(1, nothing)
    same([wc.byte_len for wc in poll(b.rcq)], [0])
    a.send(2, nothing, opcode=e.IBV_WR_RDMA_WRITE, remote=(b.mr.rkey, b.mr.buf))
    a.send(3, nothing, opcode=e.IBV_WR_RDMA_READ, remote=(b.mr.rkey, b.mr.buf))
    same([(wc.wr_id, wc.status) for wc in poll(a.scq, 3)], [(1, 0), (2, 0), (3, 0)])
    a.close()
    b.close()


@case("Q-30: there is no SRQ on this generation, plainly said")
def _():
    port = Port()
    same(port.context.query_device().max_srq, 0)
    same(outcome(lambda: SRQ(port.pd, SrqInitAttr(SrqAttr(max_wr=8)))) in ("EOPNOTSUPP", "ENOSYS"), True)
    port.close()


@case("M-04: a registration anew that the device refuses frees the page list once",
      never="it frees the list twice")
def _():
    a, b = pair()
    small, large = Scattered(4), Scattered(600)
    before = in_use()
    mr = MR(b.pd, small.length, ALL, address=small.address)
    fail_command(REG_MR)
    try:
        mr.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION, None, large.address, large.length, 0)
        raise AssertionError("it succeeded")
    except PyverbsError:
        pass
    mr.close()
    same(in_use(), before)
    # The lists of regions that come after are their own.
    regions = [Scattered(600) for _ in range(4)]
    mrs = [MR(b.pd, r.length, ALL, address=r.address) for r in regions]
    for n, (region, mr) in enumerate(zip(regions, mrs)):
        a.mr.write(f"region {n}", 8)
        for page in (0, 300, 599):
            a.send(1, [a.piece(0, 8)], opcode=e.IBV_WR_RDMA_WRITE, remote=(mr.rkey, region.address + page * PAGE))
            same(statuses(a.scq), ["SUCCESS"])
            same(region.memory[page * PAGE:page * PAGE + 8], b"region %d" % n)
    for mr in mrs:
        mr.close()
    same(in_use(), before)
    a.close()
    b.close()


@case("M-23: memory that can't be registered gives the errno of its cause")
def _():
    port = Port()
    before = in_use()

    def reg(memory, length, access):
        return MR(port.pd, length, access, address=memory)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    read_only = libc.mmap(None, 2 * PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    nothing = libc.mmap(None, 2 * PAGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    same(outcome(lambda: reg(read_only, PAGE, 0)), "ok", "to read:")
    same(outcome(lambda: reg(read_only, PAGE, ALL)), "EFAULT", "read-only memory to write:")
    same(outcome(lambda: reg(nothing, PAGE, 0)), "EFAULT", "inaccessible memory:")
    same(outcome(lambda: reg(0x1000, PAGE, ALL)), "EFAULT", "no memory:")
    file = os.memfd_create("shared")
    os.ftruncate(file, 4 * PAGE)
    shared = mmap.mmap(file, 4 * PAGE)
    same(outcome(lambda: reg(ctypes.addressof(ctypes.c_char.from_buffer(shared)), 4 * PAGE, ALL)), "ok", "shared:")
    same(outcome(lambda: reg(read_only, 0, 0)), "EINVAL", "no bytes:")
    same(outcome(lambda: reg(port.mr.buf, 1 << 20, e.IBV_ACCESS_REMOTE_WRITE)), "EINVAL", "remote but not local writes:")
    same(in_use(), before)
    port.close()


@case("M-23: a user pins no more than his limit, and what he was refused does not stay pinned")
def _():
    before = in_use()
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 10, 64 << 10))
            pd = PD(Context(name=A))
            memory = Scattered(256)
            # Root has no limit.
            os.setuid(65534)
            for _ in range(20):
                same(outcome(lambda: MR(pd, memory.length, ALL, address=memory.address)), "ENOMEM", "1 MiB:")
                same(outcome(lambda: MR(pd, 8 * PAGE, ALL, address=memory.address)), "ok", "8 pages:")
        except BaseException as error:  # pylint: disable=broad-except
            print(f"# {error}", flush=True)
            os._exit(1)
        os._exit(0)
    same(os.waitpid(child, 0)[1], 0, "the user's status:")
    same(in_use(), before)


@case("P-01: an event of a CQ that is gone meets nobody")
def _():
    hits, stale = struck(), counted("stale_event")
    for _ in range(4):
        a, b = pair()
        for cq in (a.scq, b.rcq):
            cq.req_notify()
        # The last ones may be of the control queue.
        fault("ceqe", None, {"delay": 1_000_000_000}, times=4)
        b.recv()
        a.send(1, [a.piece(0, 8)])
        same(statuses(a.scq), ["SUCCESS"])
        a.close()
        b.close()
    time.sleep(1.5)
    emulator(cmd="clear_faults", port=0)
    same(struck() - hits >= 8, True, f"{struck() - hits} events were late:")
    if DRIVER == "rust":
        same(counted("stale_event") - stale >= 4, True, f"{counted('stale_event') - stale} events met nobody:")


@case("P-03: completions of two entries round every end of the ring")
def _():
    a, b = Port(kind=e.IBV_QPT_UD, depth=32, cqe=33), Port(kind=e.IBV_QPT_UD, depth=32, cqe=31)
    a.start()
    b.start()
    ah = AH(a.pd, attr=a.route(b))
    for n in range(200):
        b.recv(n, length=4096)
        a.send(n, [a.piece(0, 16)], opcode=e.IBV_WR_SEND_WITH_IMM if n % 3 else e.IBV_WR_SEND, imm=n, ah=ah, peer=b)
        same([wc.wr_id for wc in poll(a.scq)], [n])
        wc, = poll(b.rcq)
        same((wc.wr_id, wc.byte_len, wc.imm_data if n % 3 else None), (n, 56, n if n % 3 else None))
    ah.close()
    a.close()
    b.close()


@case("P-05: each kind of receive has its own opcode")
def _():
    a, b = pair()
    remote = (b.mr.rkey, b.mr.buf)
    for opcode, kind, more, flags in (
            (e.IBV_WR_SEND, e.IBV_WC_RECV, {}, 0),
            (e.IBV_WR_SEND_WITH_IMM, e.IBV_WC_RECV, {"imm": 0x1234}, e.IBV_WC_WITH_IMM),
            (e.IBV_WR_RDMA_WRITE_WITH_IMM, e.IBV_WC_RECV_RDMA_WITH_IMM, {"imm": 0x1234, "remote": remote}, e.IBV_WC_WITH_IMM)):
        b.recv()
        a.send(1, [a.piece(0, 8)], opcode=opcode, **more)
        same(statuses(a.scq), ["SUCCESS"])
        wc, = poll(b.rcq)
        same((wc.status, wc.opcode, wc.wc_flags & e.IBV_WC_WITH_IMM), (0, kind, flags), f"{opcode}:")
    a.close()
    b.close()


@case("P-07: CQs of every size up to the limit, and not beyond")
def _():
    context = Context(name=A)
    limit = context.query_device().max_cqe
    for cqe in (1, 2, 3, 63, 64, 127, 128, 4095, limit):
        same(outcome(lambda: CQ(context, cqe)), "ok", f"{cqe} entries:")
    for cqe in (limit + 1, 0x7fffffff):
        same(outcome(lambda: CQ(context, cqe)), "EINVAL", f"{cqe} entries:")
    context.close()


@case("irdma_ah_exists: users share address handles that say the same, and keep them apart otherwise")
def _():
    port = Port(kind=e.IBV_QPT_UD)
    peer = Port(kind=e.IBV_QPT_UD)
    port.start()
    peer.start()
    domain = PD(port.context)
    before = in_use()
    ahs = [AH(port.pd, attr=port.route(peer)) for _ in range(20)]
    other = AHAttr(gr=GlobalRoute(dgid=peer.gid, sgid_index=GID, hop_limit=64, traffic_class=0x20), is_global=1, port_num=1)
    more = [AH(port.pd, attr=other), AH(domain, attr=port.route(peer))]
    if before:
        same(in_use()["ah"], before["ah"] + 3)
    for ah in ahs[:-1]:
        ah.close()
    peer.recv(5)
    port.send(1, [port.piece(0, 8)], ah=ahs[-1], peer=peer)
    same([wc.wr_id for wc in poll(peer.rcq)], [5])
    for ah in (ahs[-1], *more):
        ah.close()
    same(in_use(), before)
    domain.close()
    port.close()
    peer.close()


@case("A-04: an address handle whose making comes late is made")
def _():
    port = Port(kind=e.IBV_QPT_UD)
    before = in_use()
    fault("cqp_command", CREATE_AH, {"delay": 500_000_000})
    begin = time.time()
    ah = AH(port.pd, attr=port.route(port))
    same(0.3 < time.time() - begin < 4, True, "the delay")
    ah.close()
    fail_command(CREATE_AH)
    same(outcome(lambda: AH(port.pd, attr=port.route(port))) != "ok", True, "it was made:")
    same(in_use(), before)
    port.close()


@case("U-10: the port's LID is what users of this device know")
def _():
    same(Context(name=A).query_port(1).lid, 1)


@case("D-08: another MTU of the port: new QPs take it, old ones go on with theirs")
def _():
    netdev = os.listdir(f"/sys/class/infiniband/{A}/device/net")
    netdev = next(n for n in netdev)
    a, b = pair()

    def pass_data(x, y):
        y.recv(1, length=8192)
        x.send(1, [x.piece(0, 5000)])
        same(statuses(x.scq), ["SUCCESS"])
        same([wc.byte_len for wc in poll(y.rcq)], [5000])
    pass_data(a, b)
    for mtu, active in ((9000, e.IBV_MTU_4096), (1500, e.IBV_MTU_1024), (2100, e.IBV_MTU_2048), (1500, e.IBV_MTU_1024)):
        subprocess.run(["ip", "link", "set", netdev, "mtu", str(mtu)], check=True)
        time.sleep(0.3)
        same(Context(name=A).query_port(1).active_mtu, active, f"MTU {mtu}:")
        same(a.qp.query(e.IBV_QP_PATH_MTU)[0].path_mtu, e.IBV_MTU_1024)
        pass_data(a, b)
    x, y = Port(), Port()
    x.start(y, mtu=e.IBV_MTU_512)
    y.start(x, mtu=e.IBV_MTU_512)
    pass_data(x, y)
    for port in (a, b, x, y):
        port.close()


@case("the device answers one command late and one twice: others go on",
      never="a doubled completion costs it the next command")
def _():
    port = Port()
    before = in_use()
    for action in ({"delay": 300_000_000}, "duplicate"):
        fault("cqp_command", REG_MR, action)
        MR(port.pd, PAGE, ALL).close()
    MR(port.pd, PAGE, ALL).close()
    same(in_use(), before)
    port.close()


HUGE = 2 << 20


class Huge:
    """Addresses of huge pages in the given order, of which each may come more than once, so that
    there may be more of them than the machine has memory."""

    def __init__(self, order):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        pages = max(order) + 1
        with open("/proc/sys/vm/nr_hugepages", "w", encoding="ascii") as file:
            file.write(str(pages))
        file = os.memfd_create("huge", os.MFD_HUGETLB | os.MFD_HUGE_2MB)
        os.ftruncate(file, pages * HUGE)
        self.memory = mmap.mmap(file, pages * HUGE)
        self.length = len(order) * HUGE
        none = libc.mmap(None, self.length + HUGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_NORESERVE, -1, 0)
        self.address = -(-none // HUGE) * HUGE
        fixed = 0x10
        for place, page in enumerate(order):
            got = libc.mmap(self.address + place * HUGE, HUGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | fixed, file, page * HUGE)
            same(got, self.address + place * HUGE)
        os.close(file)


@case("M-10: a region of 6 GiB of huge pages is what it is beyond 4 GiB, too")
def _():
    # Where 32 bits wrap, the order is another one than at the beginning.
    order = [n % 3 for n in range(2048)] + [3 + n % 2 for n in range(1024)]
    huge = Huge(order)
    a, b = pair()
    before = in_use()
    mr = MR(b.pd, huge.length, ALL, address=huge.address)
    for place in (0, 1, 2, 511, 512, 2047, 2048, 2049, 2050, 3000, 3071):
        text = b"place %04d" % place
        at = place * HUGE + 12345 + place
        a.mr.write(text, len(text))
        a.send(1, [a.piece(0, len(text))], opcode=e.IBV_WR_RDMA_WRITE, remote=(mr.rkey, huge.address + at))
        same(statuses(a.scq), ["SUCCESS"], f"place {place}:")
        here = order[place] * HUGE + 12345 + place
        same(huge.memory[here:here + len(text)], text, f"place {place}:")
        a.send(2, [a.piece(4096, len(text))], opcode=e.IBV_WR_RDMA_READ, remote=(mr.rkey, huge.address + at))
        same(statuses(a.scq), ["SUCCESS"], f"place {place}:")
        same(a.mr.read(len(text), 4096), text, f"place {place}:")
    mr.close()
    same(in_use(), before)
    a.close()
    b.close()


def rereg_access(context, mr, access):
    """Registers anew with other rights, by hand: the library does so with plain memory only."""
    room = ctypes.create_string_buffer(8)
    request = struct.pack("<QIIQQQII", ctypes.addressof(room), mr.handle, e.IBV_REREG_MR_CHANGE_ACCESS, 0, 0, 0, 0, access)
    os.write(context.cmd_fd, struct.pack("<IHH", REREG_MR, (8 + len(request)) // 4, len(room) // 4) + request)


@case("a DMA buffer that its owner takes back is out of the device's reach")
def _():
    before = in_use()
    for _ in range(2):
        a, b = pair()
        buffer, take_back = lend(64)
        mr = DmaBufMR(b.pd, 64 * PAGE, ALL, buffer, 0)
        view = mmap.mmap(buffer, 64 * PAGE)
        same(outcome(lambda: rereg_access(b.context, mr, e.IBV_ACCESS_LOCAL_WRITE)), "EOPNOTSUPP", "anew:")
        a.mr.write("lent", 4)
        a.send(1, [a.piece(0, 4)], opcode=e.IBV_WR_RDMA_WRITE, remote=(mr.rkey, 5 * PAGE))
        same(statuses(a.scq), ["SUCCESS"])
        same(view[5 * PAGE:5 * PAGE + 4], b"lent")
        used = in_use()
        take_back()
        a.send(2, [a.piece(0, 4)], opcode=e.IBV_WR_RDMA_WRITE, remote=(mr.rkey, 9 * PAGE))
        same(statuses(a.scq), ["REM_ACCESS_ERR"])
        same(view[9 * PAGE:9 * PAGE + 4], bytes(4))
        # The key is nobody else's until the region is gone.
        same(in_use().get("mr"), used.get("mr"))
        mr.close()
        same(outcome(lambda: DmaBufMR(b.pd, 64 * PAGE, ALL, buffer, 0)), "ENODEV")
        view.close()
        os.close(buffer)
        # One that is gone before it is taken back, and one that the device does not want.
        buffer, take_back = lend(3)
        DmaBufMR(b.pd, 3 * PAGE, ALL, buffer, 0).close()
        fail_command(REG_MR)
        same(outcome(lambda: DmaBufMR(b.pd, 3 * PAGE, ALL, buffer, 0)) != "ok", True, "refused by the device:")
        take_back()
        os.close(buffer)
        a.close()
        b.close()
    same(in_use(), before)


@case("interrupts of completions are meant for one CPU each")
def _():
    found = 0
    with open("/proc/interrupts", encoding="ascii") as file:
        for line in file:
            number, name = line.split()[0].rstrip(":"), line.split()[-1]
            if not name.startswith("irdma-"):
                continue
            with open(f"/proc/irq/{number}/affinity_hint", encoding="ascii") as hint:
                mask = int(hint.read().replace(",", ""), 16)
            kind, _, queue = name.rpartition("-")
            same(mask, 1 << int(queue) if kind.endswith("CEQ") else 0, f"{name}:")
            found += 1
    same(found >= 4, True, f"{found} interrupts:")


sys.exit(run(DRIVER, sys.argv[2:]))
