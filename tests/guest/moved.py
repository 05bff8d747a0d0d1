#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: a connection goes on when its neighbour got another
network card for a while, as with a standby router."""
import json
import subprocess

import pyverbs.enums as e

from harness import devices
from verbs import PAGE, Port, completed


def ip(*words):
    return subprocess.run(["ip", "-j", *words], check=True, capture_output=True, text=True).stdout


def card(name):
    """The netdev of a device, and its MAC address."""
    with open(f"/sys/class/infiniband/{name}/ports/1/gid_attrs/ndevs/0", encoding="ascii") as file:
        netdev = file.read().strip()
    return netdev, json.loads(ip("link", "show", netdev))[0]["address"]


a, b = (Port(name, e.IBV_QPT_RC) for name in devices()[:2])
(netdev, _), (_, mac) = (card(name) for name in devices()[:2])
a.connect(b)
b.connect(a)
for number in range(3):
    if number:
        for lladdr in ("02:00:00:00:00:99", mac):
            ip("-6", "neigh", "replace", b.gid.gid, "lladdr", lladdr, "dev", netdev, "nud", "permanent")
    b.receive(number, PAGE, PAGE)
    a.send(number, e.IBV_WR_SEND, [a.piece(0, 100)])
    completed(b.receive_cq, number, 100)
    completed(a.send_cq, number)
ip("-6", "neigh", "del", b.gid.gid, "dev", netdev)
