#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the outcomes of rdma-core's tests on two drivers. Prints TAP lines.

  rdma-core-table.py EXPLAINED STOCK_LOG RUST_LOG

The table of all of them goes to out/rdma-core.txt.
"""
import sys
import tomllib

# From worst to best. A test that skips itself asks for what is not offered.
RANK = {"missing": 0, "error": 1, "fail": 1, "skip": 2, "pass": 3}


def read(path):
    """The outcomes in a log by test, and whether the run came to its end."""
    outcomes, done = {}, False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "result" and len(fields) >= 5:
                outcomes[fields[1]] = (fields[2], fields[4])
            done = done or fields[0] == "done"
    return outcomes, done


def main():
    with open(sys.argv[1], "rb") as file:
        explained = {entry["test"]: entry for entry in tomllib.load(file)["explained"]}
    (stock, stock_done), (rust, rust_done) = read(sys.argv[2]), read(sys.argv[3])
    failed = 0

    def verdict(good, text):
        nonlocal failed
        failed += not good
        print(f"{'ok' if good else 'not ok'} - {text}")

    verdict(stock_done and rust_done, f"rdma-core's tests came to their end on both drivers ({len(stock)} and {len(rust)})")
    table = []
    for name in sorted(stock | rust):
        a, said = stock.get(name, ("missing", ""))
        b, said_rust = rust.get(name, ("missing", ""))
        why = explained.get(name, {})
        bad = []
        for driver, got, text in (("stock", a, said), ("rust", b, said_rust)):
            if got not in ("pass", "skip") and got not in why.get(driver, []):
                bad.append(f"{got} on {driver} is not explained: {text}")
        if RANK[b] < RANK[a]:
            bad.append(f"ours is worse: {a} on stock, {b} on ours: {said_rust}")
        text = why.get("reason") if a == b and name in explained else said if a == "skip" else said_rust
        table.append(f"{name:84} {a:6} {b:6} {text}".rstrip())
        if bad:
            verdict(False, f"{name}: {'; '.join(bad)}")
        elif {a, b} & {"fail", "error"}:
            print(f"ok - {name}: {a} on stock, {b} on ours # SKIP known: {why['reason']}")
        elif a == b == "skip":
            print(f"ok - {name} # SKIP on both: {said}")
        else:
            verdict(True, f"{name}: {a} on stock, {b} on ours")
    for name in explained.keys() & stock.keys() & rust.keys():
        if (stock[name][0] == "pass" not in explained[name]["stock"]) and rust[name][0] == "pass":
            verdict(False, f"{name} passes on both, but is on the list of the explained")
    with open("out/rdma-core.txt", "w", encoding="utf-8") as file:
        print(f"{'test':84} {'stock':6} {'ours':6}", *table, sep="\n", file=file)
    return 1 if failed else 0


sys.exit(main())
