#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Puts what the judges said of both drivers side by side, line by line, as the
suites left it in out/. Prints TAP lines: ours is nowhere worse.

The table goes to out/judges.txt.
"""
import os
import re
import sys

# The suites of the judges; what says the same of one driver each is one of them.
SUITES = {"40-stock": "ports", "50-rust": "ports", "75-cases": "cases", "80-users": "users", "90-nvme": "storage",
          "95-rxe": "soft-RoCE", "97-two-machines": "two machines"}
# Lines about the stock driver alone: what it does where it is known to fail, and what is the LAN driver's.
ALONE = (" in a machine of its own", "the vendor's DDP package is loaded, and both ports come up")
LINE = re.compile(r"^(not )?ok - (stock|rust)(?: (serves|uses))?: (.*?)(?: # SKIP (.*))?$")
RANK = {"fail": 0, "missing": 1, "skip": 2, "pass": 3}


def outcomes():
    """By judge and line: the outcome of each driver, and why one was skipped."""
    table = {}
    for suite, judge in SUITES.items():
        with open(f"out/{suite}.log", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                match = LINE.match(line.strip())
                if not match:
                    continue
                bad, driver, role, name, why = match.groups()
                # Rounds and frames are not the same number for both.
                name = re.sub(r"\b\d+ (times|(?:RoCEv2 )?frames)", r"N \1", f"{role}: {name}" if role else name)
                row = table.setdefault((judge, name), {})
                outcome = "fail" if bad else "skip" if why else "pass"
                row[driver] = min(row.get(driver, "pass"), outcome, key=RANK.get)
                if why:
                    row["why"] = why
    return table


def main():
    absent = [suite for suite in SUITES if not os.path.exists(f"out/{suite}.log")]
    if absent:
        print(f"ok - ours is nowhere worse than the stock driver # SKIP {' '.join(absent)} did not run")
        return 0
    table = outcomes()
    worse = 0
    with open("out/judges.txt", "w", encoding="utf-8") as file:
        print(f"{'judge':13} {'stock':8} {'ours':8} what", file=file)
        for (judge, name), row in table.items():
            stock, ours = row.get("stock", "missing"), row.get("rust", "missing")
            print(f"{judge:13} {stock:8} {ours:8} {name}{'  (' + row['why'] + ')' if 'why' in row else ''}", file=file)
            if stock == "pass" and ours != "pass" and not name.endswith(ALONE):
                worse += 1
                print(f"not ok - {judge}: {name}: {stock} on stock, {ours} on ours")
    both = sum("stock" in row and "rust" in row for row in table.values())
    better = sum(row.get("stock") not in (None, "pass") and row.get("rust") == "pass" for row in table.values())
    if not both:
        print("ok - ours is nowhere worse than the stock driver # SKIP the suites ran with one driver only")
    elif not worse:
        print(f"ok - of {both} lines about both drivers ours is worse in none and better in {better}: out/judges.txt")
    return 1 if worse else 0


sys.exit(main())
