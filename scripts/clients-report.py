"""Counts what a client's suite came to, and sorts its failures by what is known of them.

    clients-report.py RESULTS KNOWN

RESULTS is JUnit XML, `go test -json` or mocha's JSON. KNOWN has a line for each kind of failure: what it waits for, a tab, and a
regular expression that is searched in the test's name and its message. Ends with 1 if some failure matches none.
"""

import collections
import json
import re
import sys
import xml.etree.ElementTree
from pathlib import Path


def junit(text):
    for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        outcome, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, message = "failed", f"{child.get('message') or ''} {child.text or ''}"
            elif child.tag == "skipped" and outcome == "passed":
                outcome = "skipped"
        yield name, outcome, message


def go(text):
    """Tests without those that only hold others."""
    outcomes, output = {}, collections.defaultdict(list)
    for line in text.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        test = event.get("Test")
        if test is None:
            continue
        name = f"{event['Package'].rsplit('/', 1)[-1]} {test}"
        if event["Action"] == "output":
            output[name].append(event["Output"])
        elif event["Action"] in ("pass", "fail", "skip"):
            outcomes[name] = {"pass": "passed", "fail": "failed", "skip": "skipped"}[event["Action"]]
    parents = {name[:at] for name in outcomes for at in range(len(name)) if name[at] == "/"}
    for name, outcome in outcomes.items():
        if name not in parents:
            yield name, outcome, "".join(output[name])


def mocha(text):
    report = json.loads(text)
    for kind, outcome in (("passes", "passed"), ("failures", "failed"), ("pending", "skipped")):
        for test in report[kind]:
            yield test["fullTitle"], outcome, str(test.get("err", {}).get("message", ""))


def main():
    results, known = map(Path, sys.argv[1:])
    if not results.exists():
        sys.exit(f"{results} is missing: the suite did not run")
    text = results.read_text(errors="replace")
    read = junit if results.suffix == ".xml" else mocha if '"stats"' in text[:200] else go
    rules = [line.split("\t") for line in known.read_text().splitlines() if line and not line.startswith("#")]
    rules = [(reason, re.compile(pattern, re.S)) for reason, pattern in rules]
    counts, reasons, unknown = collections.Counter(), collections.Counter(), []
    for name, outcome, message in read(text):
        counts[outcome] += 1
        if outcome == "failed":
            reason = next((reason for reason, pattern in rules if pattern.search(f"{name}\n{message}")), None)
            reasons[reason or "nothing known"] += 1
            if reason is None:
                unknown.append((name, message))
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    for reason, count in reasons.most_common():
        print(f"  {count:5} wait for: {reason}")
    for name, message in unknown:
        print(f"  UNKNOWN {name}: {' '.join(message.split())[:300]}")
    sys.exit(1 if unknown or not counts["passed"] else 0)


if __name__ == "__main__":
    main()
