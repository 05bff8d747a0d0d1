#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: changes of a queue pair's state and attributes. TAP lines.
  users-states.py stock|rust DEVICE GID_INDEX GID6_INDEX PEER PEER_GID_INDEX PEER_GID6_INDEX [WORD_OF_A_NAME]...
"""
import json
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

from ends import End
from harness import case, emulator, outcome, poll, run, same, statuses

DRIVER, NAME, PEER = sys.argv[1], sys.argv[2], sys.argv[5]
GID, GID6, PEER_GID, PEER_GID6 = (int(sys.argv[n]) for n in (3, 4, 6, 7))
RC, UD = e.IBV_QPT_RC, e.IBV_QPT_UD
RESET, INIT, RTR, RTS, SQD, SQE, ERR = STATES = range(7)
NAMES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")

# Attributes by which the core and the library know them, but for the state.
BITS = {name: getattr(e, f"IBV_QP_{name}") for name in (
    "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT", "RETRY_CNT",
    "RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE",
    "CAP", "DEST_QPN")}

# What each change of state needs, and what it may have besides (IBTA volume 1, 11.2.5.2). The core
# refuses another path on Ethernet.
NEEDS = {
    RC: {(RESET, INIT): "PKEY_INDEX PORT ACCESS_FLAGS",
         (INIT, RTR): "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
         (RTR, RTS): "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC"},
    UD: {(RESET, INIT): "PKEY_INDEX PORT QKEY", (RTR, RTS): "SQ_PSN"}}
MAY = {
    RC: {(INIT, INIT): "PKEY_INDEX PORT ACCESS_FLAGS",
         (INIT, RTR): "ACCESS_FLAGS PKEY_INDEX",
         (RTR, RTS): "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE",
         (RTS, RTS): "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE",
         (RTS, SQD): "EN_SQD_ASYNC_NOTIFY",
         (SQD, RTS): "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE",
         (SQD, SQD): "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ACCESS_FLAGS PKEY_INDEX"
                     " MIN_RNR_TIMER PATH_MIG_STATE"},
    UD: {(INIT, INIT): "PKEY_INDEX PORT QKEY",
         (INIT, RTR): "PKEY_INDEX QKEY",
         (RTR, RTS): "CUR_STATE QKEY",
         (RTS, RTS): "CUR_STATE QKEY",
         (RTS, SQD): "EN_SQD_ASYNC_NOTIFY",
         (SQD, RTS): "CUR_STATE QKEY",
         (SQD, SQD): "PKEY_INDEX QKEY"}}
CHANGES = {(RESET, RESET), (RESET, INIT), (INIT, INIT), (INIT, RTR), (RTR, RTS), (RTS, RTS), (RTS, SQD), (SQD, RTS), (SQD, SQD),
           *((old, new) for old in (INIT, RTR, RTS, SQD, ERR) for new in (RESET, ERR))}


def mask_of(table, kind, change):
    return {name: BITS[name] for name in table[kind].get(change, "").split()}


class Subject:
    """Makes queue pairs that are their own peers."""

    def __init__(self, kind):
        self.kind = kind
        self.end = End(NAME, GID, kind)

    def fresh(self, state):
        qp = QP(self.end.pd, QPInitAttr(qp_type=self.kind, scq=self.end.scq, rcq=self.end.rcq, cap=QPCap(max_send_wr=4, max_recv_wr=4)))
        way = [RESET, INIT, ERR] if state == ERR else range(RESET, state + 1)
        for change in zip(way, way[1:]):
            same(self.change(qp, *change, sum(mask_of(NEEDS, self.kind, change).values())), "ok", name_of(self.kind, change))
        same(state_of(qp), state)
        return qp

    def change(self, qp, old, new, mask):
        at = self.end.attributes(self.end)
        at.dest_qp_num = qp.qp_num
        at.qkey, at.pkey_index, at.port_num = 0x11111111, 0, 1
        at.cur_qp_state, at.qp_state = old, new
        return outcome(lambda: qp.modify(at, e.IBV_QP_STATE | mask))


def name_of(kind, change):
    return f"{'RC' if kind == RC else 'UD'} {NAMES[change[0]]} to {NAMES[change[1]]}"


def state_of(qp):
    return qp.query(e.IBV_QP_STATE)[0].qp_state


def try_all(kind, changes):
    """Tries each change with what it needs, with all that it may have, without each part of what it
    needs, and with each thing that it may not have."""
    subject = Subject(kind)
    for change in changes:
        old, new = change
        name = name_of(kind, change)
        needs, may = mask_of(NEEDS, kind, change), mask_of(MAY, kind, change)
        whole = sum(needs.values())
        qp = subject.fresh(old)
        if change not in CHANGES:
            same(subject.change(qp, old, new, 0), "EINVAL", f"{name}:")
            same(state_of(qp), old, f"{name} is refused, state:")
            qp.close()
            continue
        for part, bit in BITS.items():
            if part in needs:
                same(subject.change(qp, old, new, whole & ~bit), "EINVAL", f"{name} without {part}:")
            elif part not in may:
                same(subject.change(qp, old, new, whole | bit), "EINVAL", f"{name} with {part}:")
            same(state_of(qp), old, f"{name} is refused for {part}, state:")
        for more in (0, sum(may.values())):
            same(subject.change(qp, old, new, whole | more), "ok", f"{name} with {more:#x}:")
            same(state_of(qp), new, f"{name} with {more:#x}, state:")
            qp.close()
            qp = subject.fresh(old)
        qp.close()


OFTEN = [(old, new) for old in STATES for new in STATES
         if old not in (SQD, SQE) and (old, new) != (RTS, SQD) and (new != RESET or old == RESET)]


@case("each change of state that there is, with all that it needs, and no other: RC")
def _():
    try_all(RC, OFTEN)


@case("each change of state that there is, with all that it needs, and no other: UD")
def _():
    try_all(UD, OFTEN)


NEVER_SQD = "it flushes a QP in SQD, which the device need not bear"
TO_SQD = [(RTS, SQD), *((SQD, new) for new in STATES if new != RESET)]


@case("changes to and from SQD, with all that they need, and no other: RC", never=NEVER_SQD)
def _():
    try_all(RC, TO_SQD)


@case("changes to and from SQD, with all that they need, and no other: UD", never=NEVER_SQD)
def _():
    try_all(UD, TO_SQD)


@case("Q-11: RESET of a QP in use is refused in every state, and changes nothing", stock="it succeeds, INIT is refused after it")
def _():
    for kind in (RC, UD):
        subject = Subject(kind)
        for old in (INIT, RTR, RTS, SQD, ERR):
            qp = subject.fresh(old)
            same(subject.change(qp, old, RESET, 0), "EOPNOTSUPP", name_of(kind, (old, RESET)))
            same(state_of(qp), old)
            qp.close()


def change_with(subject, qp, new, **values):
    """Changes to the next state with these values beside what it needs."""
    at = subject.end.attributes(subject.end)
    at.qp_state = new
    for name, value in values.items():
        setattr(at, name, value)
    return outcome(lambda: qp.modify(at, e.IBV_QP_STATE | sum(mask_of(NEEDS, RC, (new - 1, new)).values())))


@case("values that are wider than their fields are refused, and change nothing", stock="it cuts them, and tells of them uncut")
def _():
    subject = Subject(RC)
    for state, values in ((INIT, {"dest_qp_num": 1 << 24}), (INIT, {"dest_qp_num": 2**32 - 1}), (RTR, {"retry_cnt": 8}),
                          (RTR, {"rnr_retry": 8}), (RTR, {"retry_cnt": 255}), (RTR, {"rnr_retry": 255})):
        qp = subject.fresh(state)
        same(change_with(subject, qp, state + 1, **values), "EINVAL", f"{values}:")
        same(state_of(qp), state)
        same(change_with(subject, qp, state + 1), "ok", f"without {values}:")
        qp.close()


@case("reads at a time, ours and the peer's, up to the limit and no more")
def _():
    subject = Subject(RC)
    told = subject.end.context.query_device()
    same((told.max_qp_rd_atom, told.max_qp_init_rd_atom), (127, 255))

    def change(qp, new, **values):
        return change_with(subject, qp, new, **values)
    for reads in (0, 1, 127):
        qp = subject.fresh(INIT)
        same(change(qp, RTR, max_dest_rd_atomic=reads), "ok", f"{reads} of the peer's:")
        qp.close()
    qp = subject.fresh(INIT)
    for reads in (128, 255):
        same(change(qp, RTR, max_dest_rd_atomic=reads), "EINVAL", f"{reads} of the peer's:")
        same(state_of(qp), INIT)
    same(change(qp, RTR, max_dest_rd_atomic=127), "ok", "127 after that:")
    same(qp.query(e.IBV_QP_MAX_DEST_RD_ATOMIC)[0].max_dest_rd_atomic, 127)
    # There is no number above the limit for ours.
    same(change(qp, RTS, max_rd_atomic=255), "ok", "255 of ours:")
    same(qp.query(e.IBV_QP_MAX_QP_RD_ATOMIC)[0].max_rd_atomic, 255)
    qp.close()


def across(gid=GID, peer_gid=PEER_GID, **more):
    a, b = End(NAME, gid), End(PEER, peer_gid)
    a.connect(b, **more)
    b.connect(a, **more)
    return a, b


def write(a, b, text="", wr_id=0):
    if text:
        a.mr.write(text, len(text))
    a.send(8, wr_id=wr_id, opcode=e.IBV_WR_RDMA_WRITE, remote=(b.mr.rkey, b.mr.buf + 8 * wr_id), offset=8 * wr_id)


def delay(nanoseconds):
    for port in (0, 1):
        emulator(cmd="wire", port=port, seed=1, faults={"delay": nanoseconds, "only_roce": True})


@case("SQD waits for what is under way, and holds back what comes then", never=NEVER_SQD)
def _():
    a, b = across(timeout=20)
    text = "".join(f"piece {n:2}" for n in range(10))
    a.mr.write(text, len(text))
    # Each way.
    delay(400_000_000)
    try:
        begin = time.monotonic()
        for n in range(8):
            write(a, b, wr_id=n)
        same(a.scq.poll(8)[0], 0, "at once:")
        a.to(SQD)
        same(time.monotonic() - begin > 0.7, True, "it waits:")
        count, wcs = a.scq.poll(10)
        same([(wc.wr_id, wc.status) for wc in wcs], [(n, 0) for n in range(8)], f"{count} completions:")
        same(b.mr.read(64, 0), text[:64].encode())
    finally:
        delay(0)
    for n in (8, 9):
        write(a, b, wr_id=n)
    same(statuses(a.scq, 1, 0.5), [], "in SQD:")
    same(b.mr.read(16, 64), bytes(16))
    # Again: nothing is under way, and it stays so.
    a.to(SQD)
    same(statuses(a.scq, 1, 0.2), [], "in SQD:")
    a.to(RTS)
    same([(wc.wr_id, wc.status) for wc in poll(a.scq, 2)], [(8, 0), (9, 0)])
    same(b.mr.read(16, 64), text[64:80].encode())


@case("SQD ends when the QP breaks before all is done", never=NEVER_SQD)
def _():
    a, b = across(retry=1, timeout=14)
    b.to(ERR)
    write(a, b)
    begin = time.monotonic()
    same(outcome(lambda: a.to(SQD)), "EINVAL")
    same(time.monotonic() - begin < 4, True, "it ends soon:")
    same(a.state(), ERR)
    same(statuses(a.scq), ["RETRY_EXC_ERR"])


@case("what is posted in SQD is flushed if the QP goes to ERR", never=NEVER_SQD)
def _():
    a, b = across()
    a.to(SQD)
    for n in range(3):
        write(a, b, wr_id=n)
    a.to(ERR)
    same([wc.wr_id for wc in poll(a.scq, 3)], [0, 1, 2])
    same(statuses(a.scq, 1, 0.2), [])


def packets(name):
    """What a device has sent over IPv4 and over IPv6."""
    listed, = json.loads(subprocess.run(["rdma", "-j", "statistic", "show", "link", f"{name}/1"], check=True, capture_output=True).stdout)
    return listed["ip4OutPkts"], listed["ip6OutPkts"]


def went(a, b):
    """Which of IPv4 and IPv6 a write went by."""
    before = packets(NAME)
    write(a, b)
    same(statuses(a.scq), ["SUCCESS"])
    end = time.monotonic() + 10
    while packets(NAME) == before and time.monotonic() < end:
        time.sleep(0.1)
    return tuple(now > then for now, then in zip(packets(NAME), before))


@case("a QP in SQD gets another path, and takes it from RTS on; in RTS it gets none", never=NEVER_SQD)
def _():
    a, b = across()
    same(went(a, b), (True, False), "IPv4:")
    a.gid, b.gid = GID6, PEER_GID6
    for end, other in ((a, b), (b, a)):
        at = QPAttr(port_num=1)
        at.ah_attr = end.route(other)
        same(outcome(lambda: end.qp.modify(at, e.IBV_QP_AV)), "EINVAL", "in RTS:")
    same(went(a, b), (True, False), "IPv4 still:")
    for end, other in ((a, b), (b, a)):
        end.to(SQD)
        at = QPAttr(port_num=1)
        at.ah_attr = end.route(other)
        end.qp.modify(at, e.IBV_QP_AV)
        same(end.state(), SQD)
    for end in (a, b):
        end.to(RTS)
    same(went(a, b), (False, True), "IPv6:")
    same(went(a, b), (False, True), "IPv6 still:")


@case("a static rate of the path is no obstacle")
def _():
    a, b = End(NAME, GID), End(PEER, PEER_GID)
    for end, other in ((a, b), (b, a)):
        at = end.attributes(other)
        at.ah_attr = end.route(other, static_rate=5)  # IBV_RATE_5_GBPS
        end.qp.to_rts(at)
    write(a, b, "rated")
    same(statuses(a.scq), ["SUCCESS"])
    same(b.mr.read(5, 0), b"rated")


@case("the rights of the peer change in RTS", stock="the right stays on")
def _():
    a, b = across()
    write(a, b)
    same(statuses(a.scq), ["SUCCESS"])
    b.qp.modify(QPAttr(qp_state=RTS), e.IBV_QP_STATE | e.IBV_QP_ACCESS_FLAGS)
    write(a, b)
    same(statuses(a.scq), ["REM_ACCESS_ERR"])


@case("the rights of the peer and other attributes change in SQD, and count from RTS on", never=NEVER_SQD)
def _():
    a, b = across()
    b.to(SQD)
    at = QPAttr(port_num=1)
    at.timeout, at.retry_cnt, at.rnr_retry, at.max_rd_atomic, at.max_dest_rd_atomic, at.min_rnr_timer = 9, 3, 2, 7, 8, 20
    names = ("TIMEOUT", "RETRY_CNT", "RNR_RETRY", "MAX_QP_RD_ATOMIC", "MAX_DEST_RD_ATOMIC", "MIN_RNR_TIMER", "ACCESS_FLAGS")
    mask = sum(BITS[name] for name in names)
    b.qp.modify(at, mask)
    b.to(RTS)
    now = b.qp.query(mask)[0]
    same((now.timeout, now.retry_cnt, now.rnr_retry, now.max_rd_atomic, now.max_dest_rd_atomic, now.min_rnr_timer,
          now.qp_access_flags), (9, 3, 2, 7, 8, 20, 0))
    write(a, b)
    same(statuses(a.scq), ["REM_ACCESS_ERR"])


sys.exit(run(DRIVER, sys.argv[8:]))
