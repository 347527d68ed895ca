#!/usr/bin/env python3
"""Prints the coverage table of a gcovr JSON report, and holds it against limits and excuses.

    coverage_report.py REPORT EXCUSES LINES_AT_LEAST BRANCHES_AT_LEAST

EXCUSES has one line for each function that keeps lines which nothing executes: `FILE FUNCTION REASON`. A missed line in any
other function is an error; an excuse that nothing needs any more is named.
"""
import json
import sys


def counted(file):
    lines = [line for line in file["lines"] if not line.get("gcovr/noncode")]
    branches = [branch for line in lines for branch in line["branches"]]
    return lines, branches


def percent(part, whole):
    return f"{100 * part / whole:5.1f} %" if whole else "      -"


def row(name, lines, branches):
    lines_hit = sum(line["count"] > 0 for line in lines)
    branches_hit = sum(branch["count"] > 0 for branch in branches)
    print(f"{name:<28}{len(lines):7}{percent(lines_hit, len(lines)):>9}{len(branches):11}"
          f"{percent(branches_hit, len(branches)):>9}")
    return 100 * lines_hit / max(1, len(lines)), 100 * branches_hit / max(1, len(branches))


def function_at(file, number):
    begun = [function for function in file["functions"] if function["lineno"] <= number]
    return max(begun, key=lambda function: function["lineno"])["name"] if begun else "-"


def missed(files):
    """{(file, function): [line number]} of what nothing executes"""
    found = {}
    for file in files:
        for line in counted(file)[0]:
            if line["count"] == 0:
                key = (file["file"], function_at(file, line["line_number"]))
                found.setdefault(key, []).append(line["line_number"])
    return found


def read_excuses(path):
    with open(path, encoding="utf-8") as excuses:
        words = [line.split(maxsplit=2) for line in excuses if line.strip() and not line.startswith("#")]
    return {(file, function): reason.strip() for file, function, reason in words}


def main(report, excuses_path, lines_at_least, branches_at_least):
    with open(report, encoding="utf-8") as text:
        files = sorted(json.load(text)["files"], key=lambda file: file["file"])
    print(f"{'':<28}{'lines':>7}{'':9}{'branches':>11}")
    every_line, every_branch = [], []
    for file in files:
        lines, branches = counted(file)
        row(file["file"], lines, branches)
        every_line += lines
        every_branch += branches
    lines_percent, branches_percent = row("the core", every_line, every_branch)

    errors = []
    if lines_percent < float(lines_at_least):
        errors.append(f"only {lines_percent:.1f} % of the lines are executed; at least {lines_at_least} % are wanted")
    if branches_percent < float(branches_at_least):
        errors.append(f"only {branches_percent:.1f} % of the branches are taken; at least {branches_at_least} % are wanted")
    found, excuses = missed(files), read_excuses(excuses_path)
    print("\nNever executed:")
    for (file, function), numbers in sorted(found.items()):
        where = f"{file}:{','.join(map(str, numbers))}: {function}"
        print(f"  {where}: {excuses.get((file, function), 'NO REASON IS GIVEN')}")
    unexcused = len(found.keys() - excuses.keys())
    if unexcused:
        errors.append(f"{unexcused} functions have lines that nothing executes, and {excuses_path} does not say why")
    for file, function in sorted(excuses.keys() - found.keys()):
        print(f"  {excuses_path}: {file} {function} needs no excuse")
    print()
    for error in errors:
        print(f"coverage: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
