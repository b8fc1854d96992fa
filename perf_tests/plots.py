#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws JSON files of bellman_perf as SVG: roofline.svg of all cases but those of submission, and scaling.svg of those of cases/scaling.yaml.

Usage: perf_tests/plots.py [--out FOLDER] [--backend Cuda] [--type float] FILE.json...

Needs matplotlib (Debian: python3-matplotlib; elsewhere: pip install matplotlib). Only float runs of Cuda are drawn unless
another type or backend is named. A time is that of one call in a CUDA graph where it was measured, else from fence to fence.

roofline.svg  multiply-adds a second against multiply-adds per byte that must be read or written; the lines are the read rate
              and the rate of multiply-adds that plain kernels reached in the same process
scaling.svg   time against B (problems), T (steps), N (rows and columns), S (states) and the columns of masked sums; dashed: the floor, which
              is the longer of the times for the bytes, for the multiply-adds and of an empty launch; thin: the baseline
"""
import argparse
import os
import re
import sys

import report

AXES = {"B": "B, problems", "T": "T, steps", "N": "N, rows and columns", "S": "S, states",
        "C": "S, columns of a masked sum"}


def import_pyplot():
    try:
        import matplotlib
    except ImportError:
        sys.exit("plots.py needs matplotlib, which this Python does not have. Debian: apt install python3-matplotlib; "
                 "elsewhere: pip install matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "bellman", "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
    import matplotlib.pyplot
    return matplotlib.pyplot


def save(plt, figure, folder, name):
    path = os.path.join(folder, name)
    # No date, so that the same numbers give the same file.
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    print(f"{path} written")


def selected(reports, backend, real):
    """(report, case, runs) of one backend and type, where the library was measured."""
    for each in reports:
        for key, runs in report.medians(each).items():
            if key.backend == backend and key.type == real and "bellman" in runs:
                yield each, key.case, runs


def intensity_and_rate(run):
    """Multiply-adds per byte, and per second."""
    seconds = report.kernel_microseconds(run) * 1e-6
    operations = run["fma/s"] * report.microseconds(run) * 1e-6
    moved = run["moved_bytes"]
    return operations / moved, operations / seconds


def draw_roofline(plt, rows, backend, real, folder):
    points = [(case, *intensity_and_rate(runs["bellman"]), report.roof(each, backend, "read_bytes/s"),
               report.roof(each, backend, f"{real}_fma/s"))
              for each, case, runs in rows if "_by_" not in case and "moved_bytes" in runs["bellman"]
              and "above a raw launch" not in (report.goal(runs["bellman"]) or "")]
    points = [point for point in points if point[3] and point[4] and point[1] > 0]
    if not points:
        return False
    figure, axes = plt.subplots(figsize=(8, 5.2))
    read = max(point[3] for point in points)
    peak = max(point[4] for point in points)
    low, high = min(point[1] for point in points) / 3, max(max(point[1] for point in points), peak / read) * 3
    corner = peak / read
    axes.plot([low, corner, high], [low * read, peak, peak], color="black", linewidth=1.5, zorder=1)
    axes.annotate(f"{report.quantity(read, 'B/s')} read", (corner / 6, corner / 6 * read), xytext=(-4, 6),
                  textcoords="offset points", ha="right")
    axes.annotate(report.quantity(peak, 'multiply-adds/s'), (high, peak), xytext=(-4, 4), textcoords="offset points",
                  ha="right")
    colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    for index, (case, x, y, _, _) in enumerate(sorted(points)):
        axes.scatter([x], [y], label=case, marker="os^Dv"[index // len(colours) % 5],
                     color=colours[index % len(colours)], zorder=2)
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="multiply-adds per byte read or written",
             ylabel="multiply-adds per second", title=f"Roofline, {backend}, {real}")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    save(plt, figure, folder, "roofline.svg")
    return True


def draw_scaling(plt, rows, backend, real, folder):
    panels = {}
    for _, case, runs in rows:
        match = re.fullmatch(r"(.*)_by_([BTNSC])_(\d+)", case)
        if match:
            series, axis, value = match.groups()
            panels.setdefault(axis, {}).setdefault(series, []).append((int(value), runs))
    if not panels:
        return False
    figure, all_axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 4), squeeze=False)
    for axes, axis in zip(all_axes[0], [axis for axis in AXES if axis in panels]):
        for series, points in panels[axis].items():
            points.sort(key=lambda point: point[0])
            x = [value for value, _ in points]
            line, = axes.plot(x, [report.kernel_microseconds(runs["bellman"]) for _, runs in points], marker="o",
                              label=series.replace("_", " "))
            axes.plot(x, [runs["bellman"].get("floor_us", float("nan")) for _, runs in points], linestyle="--",
                      color=line.get_color(), linewidth=1)
            with_baseline = [(value, report.kernel_microseconds(runs["baseline"])) for value, runs in points
                             if "baseline" in runs]
            if with_baseline:
                axes.plot(*zip(*with_baseline), color=line.get_color(), linewidth=0.6)
        axes.set_xscale("log", base=2)  # few sizes span a decade
        axes.set(yscale="log", xlabel=AXES[axis])
        axes.legend(fontsize=7)
    all_axes[0][0].set_ylabel("microseconds per call")
    figure.suptitle(f"Time against size, {backend}, {real} (dashed: floor, thin: baseline)")
    save(plt, figure, folder, "scaling.svg")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="FOLDER", default=".", help="where the plots go")
    parser.add_argument("--backend", default="Cuda")
    parser.add_argument("--type", choices=["float", "double"], default="float")
    parser.add_argument("files", metavar="FILE.json", nargs="+")
    arguments = parser.parse_args()
    plt = import_pyplot()
    rows = list(selected([report.read(file) for file in arguments.files], arguments.backend, arguments.type))
    os.makedirs(arguments.out, exist_ok=True)
    drawn = [draw(plt, rows, arguments.backend, arguments.type, arguments.out) for draw in (draw_roofline, draw_scaling)]
    if not any(drawn):
        sys.exit(f"nothing to draw: the files hold no {arguments.type} run of {arguments.backend}")


if __name__ == "__main__":
    main()
