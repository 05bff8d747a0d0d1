#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: driver data that is short, long or dirty, for queue pairs and address
handles (U-01, A-01), spoken by hand. TAP lines.
  cases-abi.py stock|rust
"""
import ctypes
import errno
import glob
import mmap
import os
import struct
import sys
import threading
import traceback

DRIVER = sys.argv[1]
PAGE = 4096
# include/uapi/rdma/ib_user_verbs.h, enum ib_uverbs_write_cmds
GET_CONTEXT, ALLOC_PD, CREATE_AH, DESTROY_AH, REG_MR, DEREG_MR = 0, 3, 5, 8, 9, 13
CREATE_CQ, CREATE_QP, MODIFY_QP, DESTROY_QP = 18, 24, 26, 27
ATTACH_MCAST, DETACH_MCAST = 30, 31
# include/uapi/rdma/irdma-abi.h
QP_RINGS, CQ_RING = 1, 2
RC, UD = 2, 4
INIT, ERR = 1, 6
IBV_QP_STATE, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT = 1, 8, 16, 32

failed = 0


def same(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what} got {got!r}, wanted {wanted!r}")


def result(f):
    try:
        f()
    except OSError as error:
        return {errno.EOPNOTSUPP: "EOPNOTSUPP"}.get(error.errno, errno.errorcode[error.errno])
    return "ok"


def in_use():
    out = ""
    for path in sorted(glob.glob("/sys/kernel/debug/irdma_rs/*/tables")):
        out += "".join(line for line in open(path, encoding="ascii") if not line.startswith(("arp", "segment")))
    return out


def first_device():
    paths = sorted(glob.glob("/sys/class/infiniband/*"), key=lambda p: os.path.realpath(p + "/device"))
    return os.path.basename(paths[0])


class Raw:
    """The first device, with a domain and a completion queue."""

    def __init__(self):
        name = first_device()
        node = next(os.path.basename(p) for p in glob.glob("/sys/class/infiniband_verbs/uverbs*")
                    if open(p + "/ibdev", encoding="ascii").read().strip() == name)
        self.gid = bytes.fromhex(open(f"/sys/class/infiniband/{name}/ports/1/gids/0", encoding="ascii").read().replace(":", ""))
        self.fd = os.open("/dev/infiniband/" + node, os.O_RDWR | os.O_CLOEXEC)
        self.kept = []
        core, _ = self.call(GET_CONTEXT, b"", 8, struct.pack("<IB3xQ", 0, 5, 1), 80)
        os.close(struct.unpack("<II", core)[0])
        core, _ = self.call(ALLOC_PD, b"", 4, b"", 8)
        self.pd, = struct.unpack("<I", core)
        ring, shadow = self.memory(1), self.memory(1)
        for start in (ring, shadow):
            self.reg_mr(start, PAGE, struct.pack("<HHHH", CQ_RING, 1, 0, 0))
        core, _ = self.call(CREATE_CQ, struct.pack("<QIIiI", 0, 64, 0, -1, 0), 8, struct.pack("<QQ", ring, shadow), 8)
        self.cq, = struct.unpack_from("<I", core)

    def write(self, command, payload, out=0):
        os.write(self.fd, struct.pack("<IHH", command, (8 + len(payload)) // 4, out // 4) + payload)

    def call(self, command, core, core_out, driver, driver_out):
        room = ctypes.create_string_buffer(b"\xaa" * (core_out + driver_out), core_out + driver_out)
        self.write(command, struct.pack("<Q", ctypes.addressof(room)) + core + driver, len(room))
        return room.raw[:core_out], room.raw[core_out:]

    def memory(self, pages):
        memory = mmap.mmap(-1, pages * PAGE)
        self.kept.append(memory)
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def reg_mr(self, start, length, driver):
        core, _ = self.call(REG_MR, struct.pack("<QQQII", start, length, start, self.pd, 1), 12, driver, 0)
        return struct.unpack_from("<I", core)[0]

    def create_qp(self, cut=lambda r: r, room=24, kind=RC):
        """Makes a queue pair; what is left of one that fails is taken away."""
        start = self.memory(6)
        mr = self.reg_mr(start, 6 * PAGE, struct.pack("<HHHH", QP_RINGS, 0, 1, 4))
        core = struct.pack("<QIIIIIIIIIBBBB", 0, self.pd, self.cq, self.cq, 0, 8, 8, 1, 1, 0, 0, kind, 0, 0)
        try:
            core, answer = self.call(CREATE_QP, core, 32, cut(struct.pack("<QQQQ", start, 0, 0, 0)), room)
        except OSError:
            self.write(DEREG_MR, struct.pack("<I", mr))
            raise
        return struct.unpack_from("<I", core)[0], answer, mr

    def destroy_qp(self, qp, mr):
        self.call(DESTROY_QP, struct.pack("<II", qp, 0), 4, b"", 0)
        self.write(DEREG_MR, struct.pack("<I", mr))

    def modify_qp(self, qp, mask, state, driver=b"", room=0):
        """By the extended command, since the old one passes nothing on to the driver."""
        core = bytes(64) + struct.pack("<7I", qp, mask, 0, 0, 0, 0, 0)
        core += struct.pack("<HH13B3xII", 0, 0, state, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
        answer = ctypes.create_string_buffer(b"\xaa" * (8 + room), 8 + room)
        header = struct.pack("<IHHQHHI", 1 << 31 | MODIFY_QP, len(core) // 8, 1, ctypes.addressof(answer), len(driver) // 8, room // 8, 0)
        os.write(self.fd, header + core + driver)
        return answer.raw[8:]

    def create_ah(self, driver=b"", room=8):
        route = self.gid + struct.pack("<IBBBB", 0, 0, 64, 0, 0)
        core = struct.pack("<QII", 0, self.pd, 0) + route + struct.pack("<HBBBBBB", 0, 0, 0, 0, 1, 1, 0)
        core, answer = self.call(CREATE_AH, core, 4, driver, room)
        return struct.unpack("<I", core)[0], answer

    def destroy_ah(self, ah):
        self.write(DESTROY_AH, struct.pack("<I", ah))

    def mcast(self, command, qp, group):
        self.write(command, group + struct.pack("<IHH", qp, 0, 0))

    def close(self):
        os.close(self.fd)


def case(name, never=None):
    """A case. What the stock driver does otherwise, so that it may not even try, is in `never`."""
    def run(f):
        global failed
        if DRIVER == "stock" and never:
            print(f"ok - {DRIVER}: {name} # SKIP known: {never}")
            return
        raw = Raw()
        try:
            before = in_use()
            f(raw)
            same(in_use(), before, "what is in use:")
            print(f"ok - {DRIVER}: {name}")
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok - {DRIVER}: {name}")
            for line in traceback.format_exc().splitlines()[-6:]:
                print(f"#   {line}")
        raw.close()
    return run


@case("U-01: lengths of the request and the response of a new QP")
def _(raw):
    def one(cut=lambda r: r, room=24):
        qp, answer, mr = raw.create_qp(cut, room)
        raw.destroy_qp(qp, mr)
        return answer
    for length in (0, 4, 8, 12):
        same(result(lambda: one(lambda r: r[:length])), "EINVAL", f"{length} bytes:")
    for length in (16, 20, 32):
        same(result(lambda: one(lambda r: r[:length])), "ok", f"{length} bytes:")
    same(result(lambda: one(lambda r: r + bytes(32))), "ok", "zeroes behind:")
    same(result(lambda: one(lambda r: r + bytes(28) + b"\x01\0\0\0")), "EOPNOTSUPP", "dirty:")
    for room in (0, 4, 16):
        same(result(lambda: one(room=room)), "EINVAL", f"room for {room}:")
    same(result(lambda: one(room=20)), "ok", "room for 20:")
    same(one(room=40)[24:], bytes(16), "the end of the response:")


@case("U-01: lengths of the request and the response of a change of a QP")
def _(raw):
    qp, _, mr = raw.create_qp()
    mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT
    same(result(lambda: raw.modify_qp(qp, mask, INIT, bytes(8) + b"\x01" + bytes(7))), "EOPNOTSUPP", "dirty:")
    for room in (8, 16):
        same(result(lambda: raw.modify_qp(qp, mask, INIT, room=room)), "EINVAL", f"room for {room}:")
    same(raw.modify_qp(qp, mask, INIT, bytes(24), 40), bytes(40), "the response:")
    same(result(lambda: raw.modify_qp(qp, mask, INIT)), "ok", "none:")
    same(result(lambda: raw.modify_qp(qp, IBV_QP_STATE, ERR, b"\1\1" + bytes(6))), "ok", "a flush:")
    same(result(lambda: raw.modify_qp(qp, IBV_QP_STATE, ERR, b"\1\1" + bytes(6))), "ok", "another:")
    raw.destroy_qp(qp, mr)


@case("U-01, A-01: lengths of the request and the response of an address handle, of which all is written")
def _(raw):
    def one(driver=b"", room=8):
        ah, answer = raw.create_ah(driver, room)
        raw.destroy_ah(ah)
        return answer
    for room in (0, 4):
        same(result(lambda: one(room=room)), "EINVAL", f"room for {room}:")
    same(one()[4:], bytes(4), "what is reserved:")
    same(one(room=24)[4:], bytes(20), "the end of the response:")
    same(result(lambda: one(bytes(16))), "ok", "zeroes:")
    same(result(lambda: one(b"\x01" + bytes(15))), "EOPNOTSUPP", "dirty:")


@case("A-09: queue pairs join and leave a multicast group at the same time; the ninth may not",
      never="first joins race, and it makes the group twice")
def _(raw):
    group = bytes.fromhex("ff1e000000000000000000000001") + b"\0\2"
    qps = [raw.create_qp(kind=UD) for _ in range(9)]
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
    same(result(lambda: raw.mcast(ATTACH_MCAST, qps[8][0], group)), "ENOMEM", "the ninth:")
    for qp, _, _ in qps[:8]:
        raw.mcast(DETACH_MCAST, qp, group)
    for qp, _, mr in qps:
        raw.destroy_qp(qp, mr)


sys.exit(1 if failed else 0)
