#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Reads the module's source: who uses whom, and what the table of functions promises. TAP lines."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What the rooms may use is in the README's table.
ROOT_USES = {"lan", "hw", "bindings"}
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
# The example of a driver that `rdma/` serves.
EXAMPLE, MAX_EXAMPLE = "tests-kunit/null_device.rs", 150

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


def used(file):
    """The rooms that a file uses."""
    return sorted(set(roots(code(file))) & set(ROOMS))


def uses(room, allowed):
    return [
        f"{file.relative_to(ROOT)} uses {name}"
        for file in sources(room)
        for name in used(file)
        if name != room and name not in allowed
    ]


def table(readme):
    """What is wrong with the README's table of rooms."""
    told = {
        name.removesuffix(".rs"): set(re.findall(r"\w+", words))
        for name, words in re.findall(r"^\| `([\w.]+)/?` \| .* \|(.*)\|$", readme, re.M)
    }
    return [
        f"{name}: {sorted(told.get(name, ()))} in the README, {sorted(allowed)} here"
        for name, allowed in {"irdma_rs": ROOT_USES, **ROOMS}.items()
        if told.get(name) != allowed
    ]


def unsafe(readme):
    """What is wrong with what the README says of `unsafe`."""
    sentence = re.search(r"^`unsafe` lives in .*?\. ", readme, re.M | re.S)
    named = set(re.findall(r"`(\w+\.rs)`", sentence.group())) if sentence else set()
    hold = {
        file.relative_to(ROOT / "hw" if file.is_relative_to(ROOT / "hw") else ROOT).as_posix()
        for file in [ROOT / "irdma_rs.rs", *sources("hw")]
        if re.search(r"\bunsafe\b(?!_)", code(file))
    }
    modules = re.findall(r"^(#\[forbid\(unsafe_code\)\]\n)?(?:pub\(crate\) )?mod (\w+);", (ROOT / "hw.rs").read_text(), re.M)
    return (
        [f"{name} holds some, the README does not say so" for name in sorted(hold - named)]
        + [f"{name} holds none, the README names it" for name in sorted(named - hold)]
        + [f"hw/{name}.rs does not forbid it" for forbid, name in modules if not forbid and f"{name}.rs" not in named]
    )


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

    root = ROOT / "irdma_rs.rs"
    check("irdma_rs.rs uses no more than it may", sorted(set(used(root)) - ROOT_USES))
    readme = (ROOT / "README.md").read_text()
    check("the README tells which room uses which", table(readme))
    check("the README tells where unsafe code is, all else forbids it", unsafe(readme))

    text = root.read_text()
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
    lines = (ROOT / EXAMPLE).read_text().count("\n")
    check(f"the example driver has {MAX_EXAMPLE} lines or less", [f"{lines}"] if lines > MAX_EXAMPLE else [])
    check("FUNCTIONS.md names what is there, and suites that exist", functions())
    return failures


sys.exit(1 if main() else 0)
