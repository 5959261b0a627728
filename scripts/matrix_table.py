"""Prints what works on which Spark, from the results of scripts/matrix.sh.

A row for each Spark, a line for each failure, and a row for each file of tests.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

KINDS = ("passed", "not available", "failed")


def outcome_of(case):
    """How a test ended, and what was said."""
    for tag in ("failure", "error"):
        found = case.find(tag)
        if found is not None:
            lines = (found.get("message") or "").strip().splitlines()
            return "failed", lines[0] if lines else tag
    return ("passed" if case.find("skipped") is None else "not available"), ""


def row(*cells):
    """Print a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |")


def main(versions):
    """Print all; 1 if a test failed."""
    totals, by_file, failures, minutes = {}, {}, [], {}
    for version in versions:
        path, status = (Path(".matrix") / f"{version}.{kind}" for kind in ("xml", "status"))
        # 1 where tests failed. Tests that were stopped leave what they had found till then.
        if not path.exists() or status.read_text().strip() not in ("0", "1"):
            failures.append(f"{version}: the tests did not end, see .matrix/{version}.log")
        if not path.exists():
            continue
        suite = ElementTree.parse(path).find("testsuite")
        minutes[version] = round(float(suite.get("time")) / 60)
        totals[version] = Counter()
        for case in suite.iter("testcase"):
            if not case.get("name"):  # the test amid which all were stopped
                continue
            kind, said = outcome_of(case)
            file = case.get("classname", "").rsplit(".", 1)[-1].removeprefix("test_")
            totals[version][kind] += 1
            by_file.setdefault(file, {}).setdefault(version, Counter())[kind] += 1
            if kind == "failed":
                failures.append(f"{version}: {file}, {case.get('name')}: {said}")

    row("Spark", *KINDS, "minutes")
    print("|---" * (len(KINDS) + 2) + "|")
    for version, counts in totals.items():
        row(version, *(counts[kind] or "" for kind in KINDS), minutes[version])
    print()
    for failure in failures:
        print(f"- {failure}")
    print()
    row("tests of", *totals)
    print("|---" * (len(totals) + 1) + "|")
    for file, counted in sorted(by_file.items()):
        cells = []
        for version in totals:
            counts = counted.get(version, Counter())
            rest = [f"{counts[kind]} {kind}" for kind in KINDS[1:] if counts[kind]]
            cells.append(", ".join([str(counts["passed"]), *rest]))
        row(file.replace("_", " "), *cells)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
