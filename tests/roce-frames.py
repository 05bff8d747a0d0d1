#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks the RoCEv2 frames of a capture by scapy's idea of them.

  roce-frames.py PCAP [AT_MOST]

Of more than AT_MOST frames every second, third ... is looked at.
"""

import sys

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

ROCE_PORT = 4791


def complaint(frame):
    """Returns what is wrong with a RoCEv2 frame, or None."""
    udp = frame[UDP]
    ip = frame[IP] if IP in frame else frame[IPv6]
    length = ip.len - 4 * ip.ihl if IP in frame else ip.plen
    if udp.len != length:
        return f"UDP says {udp.len} bytes, IP {length}"
    if BTH not in frame:
        return "no base transport header"
    bth = frame[BTH]
    if bth.version != 0:
        return f"transport header version {bth.version}"
    if (udp.len - 8) % 4:
        return f"{udp.len - 8} bytes are not padded to four"
    # Without what pads a short Ethernet frame, which scapy takes for payload.
    whole = IP(bytes(ip)[: ip.len]) if IP in frame else IPv6(bytes(ip)[: 40 + ip.plen])
    bth = whole[BTH]
    want = bth.compute_icrc(b"")
    carried = bth.icrc.to_bytes(4, "big")
    if carried != want:
        return f"ICRC {carried.hex()}, should be {want.hex()}"
    return None


def main():
    at_most = int(sys.argv[2]) if len(sys.argv) > 2 else sys.maxsize
    with RawPcapReader(sys.argv[1]) as capture:
        step = -(-sum(1 for _ in capture) // at_most) or 1
    frames = bad = 0
    with RawPcapReader(sys.argv[1]) as capture:
        for number, (raw, _) in enumerate(capture, 1):
            if number % step:
                continue
            frame = Ether(raw)
            if UDP not in frame or frame[UDP].dport != ROCE_PORT:
                continue
            frames += 1
            wrong = complaint(frame)
            if wrong:
                bad += 1
                if bad <= 10:
                    print(f"frame {number}: {wrong}")
    print(f"{frames} RoCEv2 frames, {bad} wrong")
    return 1 if bad or not frames else 0


if __name__ == "__main__":
    sys.exit(main())
