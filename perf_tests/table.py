#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints JSON files of bellman_perf as Markdown tables, medians of the run: the cases with a goal first, if there are any,
then all others, one row per case, backend and type.

Usage: perf_tests/table.py FILE.json...
"""
import sys

import report


def optional(run, counter):
    return f"{run[counter]:.4g}" if run and counter in run else "-"


def in_unit_of_goal(run, counter):
    """A number beside the goal: shares as percentages, rates with a prefix."""
    if counter not in run:
        return "-"
    if " % " in report.goal(run):
        return f"{100 * run[counter]:.3g} %"
    return report.quantity(run[counter], "") if run[counter] >= 1e6 else f"{run[counter]:.4g}"


def time(run):
    return f"{report.microseconds(run):.4g}" if run else "-"


def print_goals(rows):
    print("| case | backend | type | goal | measured | floor | met | call, us | in graph, us | baseline, us | speed-up |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for key, runs in rows:
        run = runs["bellman"]
        speed_up = f"{run['speed_up']:.3g}" if "speed_up" in run else "-"
        print(f"| {key.case} | {key.backend} | {key.type} | {report.goal(run)} | {in_unit_of_goal(run, 'goal_measured')} "
              f"| {in_unit_of_goal(run, 'goal_floor')} | {'yes' if run['goal_met'] else '**no**'} | {time(run)} "
              f"| {optional(run, 'graph_us')} | {time(runs.get('baseline'))} | {speed_up} |")


def print_cases(rows):
    print("| case | backend | type | baseline, us | bellman, us | speed-up | in graph, us | floor, us | cells | bytes | "
          "share of roof |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for key, runs in rows:
        run = runs["bellman"]
        speed_up = f"{run['speed_up']:.3g}" if "speed_up" in run else "-"
        print(f"| {key.case} | {key.backend} | {key.type} | {time(runs.get('baseline'))} | {time(run)} | {speed_up} "
              f"| {optional(run, 'graph_us')} | {optional(run, 'floor_us')} | {report.quantity(run['cells/s'], '/s')} "
              f"| {report.quantity(run['bytes/s'], 'B/s')} | {100 * run['roof_share']:.2g} % |")


def main(files):
    rows = []
    for file in files:
        rows += [row for row in report.medians(report.read(file)).items() if "bellman" in row[1]]
    goals = [row for row in rows if "goal" in row[1]["bellman"]]
    cases = [row for row in rows if "goal" not in row[1]["bellman"]]
    if goals:
        print_goals(goals)
        print(f"\n{sum(run['bellman']['goal_met'] == 1 for _, run in goals)} of {len(goals)} measured goals are met.")
    if goals and cases:
        print()
    if cases:
        print_cases(cases)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1:])
