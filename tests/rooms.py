#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Reads the module's source: who uses whom, and what the table of functions promises. TAP lines."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A room and the rooms that it may use, as the README has them from top to bottom.
ROOMS = {
    "lan": {"verbs", "hw", "bindings"},
    "verbs": {"hw", "uk", "rdma"},
    "hw": {"uk", "bindings"},
    "uk": set(),
    "rdma": {"bindings"},
    "bindings": set(),
}
# Rooms that must not hold `unsafe` at all.
SAFE = ("lan", "verbs", "uk")
MAX_LINES = 800

failures = 0


def check(name, faults):
    global failures
    print(("not ok - " if faults else "ok - ") + name)
    for fault in faults:
        print("#", fault)
    failures += bool(faults)


def sources(room):
    return [f for f in [ROOT / f"{room}.rs", *sorted((ROOT / room).rglob("*.rs"))] if "_generated" not in f.name]


def code(file):
    """The text without comments."""
    return re.sub(r"//[^\n]*", "", file.read_text())


def roots(text):
    """First names of all paths that begin with `crate::`, those of nested lists too."""
    for match in re.finditer(r"(?<![\w$])crate::", text):
        at = match.end()
        if text[at] != "{":
            yield re.match(r"\w+", text[at:]).group()
            continue
        depth, name = 0, True
        for word in re.finditer(r"[{},]|\w+", text[at:]):
            token = word.group()
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if not depth:
                    break
            elif token == ",":
                name = depth == 1
                continue
            elif depth == 1 and name:
                yield token
                name = False
            if depth == 1 and token == "{":
                name = True


def uses(room, allowed):
    return [
        f"{file.relative_to(ROOT)} uses {name}"
        for file in sources(room)
        for name in sorted(set(roots(code(file))))
        if name in ROOMS and name != room and name not in allowed
    ]


def functions():
    """What is wrong with the table of functions."""
    faults = []
    suites = {file.name for file in (ROOT / "tests").glob("[0-9]*")}
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| (.*) \|$", (ROOT / "FUNCTIONS.md").read_text(), re.M)
    if len(rows) < 80:
        faults.append(f"there are {len(rows)} rows only")
    everywhere = "\n".join(file.read_text() for room in ROOMS for file in sources(room))
    for name, here, run_by in rows:
        if not here:
            if "not yet" not in run_by and "not on this generation" not in run_by:
                faults.append(f"{name}: neither here nor missing")
            if f'alias = "{name}"' in everywhere:
                faults.append(f"{name}: is there after all")
            continue
        for file in re.findall(r"`([^`]+)`", here):
            text = (ROOT / file).read_text()
            if f'alias = "{name}"' not in text and f"fn {name}(" not in text:
                faults.append(f"{name}: not in {file}")
        if f'alias = "{name}"' not in everywhere:
            faults.append(f"{name}: no item has the alias")
        suite = re.match(r"`([^`]+)`", run_by)
        if not suite or suite.group(1) not in suites:
            faults.append(f"{name}: no suite {run_by}")
    return faults


def main():
    sample = "use crate::{\n a::b,\n c::{d, e},\n f, //\n}; crate::g::h(); pub(in crate::i) use $crate::j;"
    found = list(roots(re.sub(r"//[^\n]*", "", sample)))
    check("this test reads lists of imports", [] if found == list("acfgi") else [str(found)])

    for room, allowed in ROOMS.items():
        check(f"{room} uses rooms below it only", uses(room, allowed))

    text = (ROOT / "irdma_rs.rs").read_text()
    check(
        "rooms without unsafe code say so to the compiler",
        [room for room in SAFE if f"#[forbid(unsafe_code)]\nmod {room};" not in text],
    )
    check(
        f"no file of a room is longer than {MAX_LINES} lines",
        [
            f"{file.relative_to(ROOT)}: {lines}"
            for room in ROOMS
            for file in sources(room)
            if (lines := file.read_text().count("\n")) > MAX_LINES
        ],
    )
    check("FUNCTIONS.md names what is there, and suites that exist", functions())
    return failures


sys.exit(1 if main() else 0)
