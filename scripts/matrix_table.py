"""Prints what works on which Spark: a row for each file of tests that scripts/matrix.sh ran."""

import sys
from pathlib import Path
from xml.etree import ElementTree

versions = sys.argv[1:]
counts: dict[str, dict[str, list[int]]] = {}
for version in versions:
    for case in ElementTree.parse(Path(".matrix") / f"{version}.xml").iter("testcase"):
        name = case.get("classname", "").rsplit(".", 1)[-1].removeprefix("test_")
        outcome = counts.setdefault(name, {}).setdefault(version, [0, 0, 0])
        failed = case.find("failure") is not None or case.find("error") is not None
        outcome[1 if failed else 2 if case.find("skipped") is not None else 0] += 1

print("| tests of | " + " | ".join(versions) + " |")
print("|---" * (len(versions) + 1) + "|")
for name, by_version in sorted(counts.items()):
    cells = []
    for version in versions:
        passed, failed, skipped = by_version.get(version, [0, 0, 0])
        cell = f"{passed}" + (f", {failed} failed" if failed else "")
        cells.append(cell + (f", {skipped} not there" if skipped else ""))
    print(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + " |")
