# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON of bellman_perf: what table.py and plots.py have in common."""
import json
import sys
from collections import namedtuple

# What a run measured: a case on a backend in a type, by the obvious kernel ("baseline") or the library ("bellman").
Key = namedtuple("Key", "case backend type")


def read(file):
    """The report in a file; ends the program with a sentence if it is none."""
    try:
        with open(file, encoding="utf-8") as stream:
            report = json.load(stream)
    except OSError as error:
        sys.exit(f"{file}: cannot be read: {error.strerror}")
    except ValueError as error:
        sys.exit(f"{file}: not JSON: {error}")
    if not isinstance(report, dict) or "benchmarks" not in report or "context" not in report:
        sys.exit(f"{file}: not a report of bellman_perf: it has no context or no benchmarks")
    return report


def medians(report):
    """Maps each Key to {"baseline": run, "bellman": run}, in the order of the report.

    A benchmark of a single repetition has no median; then the one run stands for itself.
    """
    rows = {}
    for run in report["benchmarks"]:
        if run.get("error_occurred"):
            continue
        if run["run_type"] == "aggregate" and run["aggregate_name"] != "median":
            continue
        case, backend, real, which = run["run_name"].split("/")[:4]
        rows.setdefault(Key(case, backend, real), {})[which] = run
    return rows


def quantity(value, unit):
    """A rate with a metric prefix, three digits."""
    for prefix in ["", "k", "M", "G", "T"]:
        if value < 1000 or prefix == "T":
            return f"{value:.3g} {prefix}{unit}"
        value /= 1000


def microseconds(run):
    """The time of a call from fence to fence."""
    return run["real_time"] * {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[run["time_unit"]]


def kernel_microseconds(run):
    """The time of a call without its submission, where it is known; else from fence to fence."""
    return run.get("graph_us", microseconds(run))


def roof(report, backend, what):
    """What plain kernels reached in the same process: "read_bytes/s", "float_fma/s", ...; None in older reports."""
    value = report["context"].get(f"{backend}.{what}")
    return None if value is None else float(value)


def goal(run):
    """The goal of a run in words; None if it has none."""
    return run["label"].partition("; goal ")[2] if "goal" in run else None
