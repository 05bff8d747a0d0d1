#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""On which traffic classes the queue pairs of tests/guest/cases-dcb send, and
whether their packets carry a tag for it, as the trace of the emulator has it.
TAP lines.

    queue-sets.py LABEL TRACE
"""
import json
import sys

LABEL, TRACE = sys.argv[1:]
# The queue pair of general services has no path of its own.
GENERAL = 1
MODIFY_QP, SUSPEND_QP, RESUME_QP, WORK_SCHED_NODE = 0x01, 0x29, 0x2A, 0x2C
# What the queue pairs of type of service 0 and 0x10 are on: at first and after each change.
WANTED = [(0, 0), (0, 1), (1, 0), (0, 0)]
# The VLAN tags of new ones, outside of a VLAN: one where there are several classes.
WANTED_TAGS = [{None}, {0}, {0}, {None}]
RTR = 4


def bits(word, high, low):
    return word >> low & (1 << high - low + 1) - 1


def main():
    classes = {}    # handle of a queue set -> class
    services = {}   # queue pair -> type of service
    nodes = {}      # slot of a command -> its words
    told = [{}]     # type of service -> classes of its queue pairs
    suspended = resumed = 0
    ready = None    # queue pair that gets ready to receive
    tags = [set()]  # VLAN tags of new queue pairs of type of service 0
    with open(TRACE, encoding="utf-8") as file:
        for line in file:
            if '"cqp' not in line and '"context"' not in line:
                continue
            event = json.loads(line)
            if event["port"] != 0:
                continue
            if event["ev"] == "context" and "qp" in event:
                qp, words = event["qp"], event["words"]
                services[qp] = bits(words[3], 31, 24)
                if qp == ready and services[qp] == 0:
                    tags[-1].add(bits(words[6], 47, 32) if bits(words[0], 5, 5) else None)
                if qp == ready and len(told) == 1:
                    told[0].setdefault(services[qp], set()).add(classes.get(bits(words[22], 25, 16)))
            elif event["ev"] == "cqp":
                words, code, ready = event["words"], event["code"], None
                if code == WORK_SCHED_NODE:
                    nodes[event["index"]] = words
                elif code == MODIFY_QP and bits(words[3], 62, 60) == RTR:
                    ready = bits(words[3], 23, 0)
                elif code == SUSPEND_QP and bits(words[3], 23, 0) != GENERAL:
                    if suspended == resumed:
                        told.append({})
                        tags.append(set())
                    suspended += 1
                elif code == RESUME_QP and bits(words[3], 23, 0) != GENERAL:
                    resumed += 1
                    service = services.get(bits(words[3], 23, 0))
                    told[-1].setdefault(service, set()).add(classes.get(bits(words[2], 31, 0)))
            elif event["ev"] == "cqp_done" and event["index"] in nodes:
                header = nodes.pop(event["index"])[3]
                # Operation 0 adds, and a leaf gets the handle of a queue set.
                if bits(header, 55, 52) == 0 and bits(header, 61, 61) and not event["error"]:
                    classes[event["value"]] = bits(header, 58, 56)
    found = [(entry.get(0), entry.get(0x10)) for entry in told]
    wanted = [({low}, {high}) for low, high in WANTED]
    good = found == wanted and suspended == resumed == 4 * (len(WANTED) - 1)
    print(f"{'ok' if good else 'not ok'} - {LABEL}: each change stops the queue pairs and puts them on queue sets of their classes")
    if not good:
        print(f"# {suspended} suspended, {resumed} resumed; classes {found}, wanted {wanted}")
    tagged = tags == WANTED_TAGS
    print(f"{'ok' if tagged else 'not ok'} - {LABEL}: packets outside of a VLAN carry their priority where there are several classes")
    if not tagged:
        print(f"# tags {tags}, wanted {WANTED_TAGS}")
    return not (good and tagged)


sys.exit(main())
