#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints JSON files of bellman_perf as a Markdown table: one row per case, backend and type, medians of the run.

Usage: perf_tests/table.py FILE.json...
"""
import json
import sys


def medians(report):
    """Maps (case, backend, type) to {"baseline": run, "bellman": run}, in the order of the report.

    A report of a single repetition has no medians; then the one run stands for itself.
    """
    rows = {}
    for run in report["benchmarks"]:
        if run.get("error_occurred"):
            continue
        if run["run_type"] == "aggregate" and run["aggregate_name"] != "median":
            continue
        case, backend, real, which = run["run_name"].split("/")[:4]
        rows.setdefault((case, backend, real), {})[which] = run
    return rows


def quantity(value, unit):
    """A rate with a metric prefix, three digits."""
    for prefix in ["", "k", "M", "G", "T"]:
        if value < 1000 or prefix == "T":
            return f"{value:.3g} {prefix}{unit}"
        value /= 1000


def in_graph(run):
    return f"{run['graph_us']:.4g}" if "graph_us" in run else "-"


def microseconds(run):
    return f"{run['real_time'] * {'ns': 1e-3, 'us': 1, 'ms': 1e3}[run['time_unit']]:.4g}" if run else "-"


def main(files):
    print("| case | backend | type | baseline, us | bellman, us | speed-up | in graph, us | cells | bytes | share of roof |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for file in files:
        with open(file, encoding="utf-8") as stream:
            report = json.load(stream)
        for (case, backend, real), runs in medians(report).items():
            if "bellman" not in runs:
                continue
            run = runs["bellman"]
            speed_up = f"{run['speed_up']:.3g}" if "speed_up" in run else "-"
            print(f"| {case} | {backend} | {real} | {microseconds(runs.get('baseline'))} | {microseconds(run)} | {speed_up} "
                  f"| {in_graph(run)} | {quantity(run['cells/s'], '/s')} | {quantity(run['bytes/s'], 'B/s')} | {100 * run['roof_share']:.2g} % |")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
