"""Reads what tbv-trace writes by other implementations of the formats: HdrHistogram's interval log, OpenMetrics, and
Perfetto's trace. What they read has to agree with the JSON and CSV forms of the same report. Then every file is broken
in several ways, and each has to be refused.

Usage: formats.py FOLDER      (cargo xtask check-formats)
"""

import csv
import json
import math
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from hdrh.histogram import HdrHistogram
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
from prometheus_client.openmetrics.parser import text_string_to_metric_families

# Our buckets are wrong by 1/64 at most, two digits of HdrHistogram by 1/128; and each side rounds.
TOLERANCE = 1 / 64 + 1 / 128
SHARES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p99_9_ns": 0.999}


class Refused(Exception):
    """A file is not what it should be."""


def demand(condition, what):
    if not condition:
        raise Refused(what)


def rows(path):
    """The CSV form's rows of distributions; those of losses are left out."""
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["kind"] != "loss"]


# HdrHistogram


def tag_of(row):
    """The tag that the log gives to a row."""
    parts = [row["kind"]]
    if row["pid"]:
        parts += ["pid:" + row["pid"], "comm:" + row["comm"]]
    parts.append("device:" + row["device"])
    parts += [name + ":" + row[key] for name, key in (("qp", "qpn"), ("opcode", "opcode")) if row[key]]
    return "/".join(re.sub(r"[^A-Za-z0-9_.:-]", "_", part) for part in parts)


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(a, b) + 1


def hdr(path, table):
    """Every interval of the log is a row of the table, and says the same."""
    expected = {(float(row["start_ns"]) / 1e9, tag_of(row)): row for row in rows(table)}
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    demand("#[Histogram log format version 1.3]" in lines, "no format version")
    for line in lines:
        if line.startswith(("#", '"StartTimestamp"')):
            continue
        fields = line.split(",")
        demand(len(fields) == 5 and fields[0].startswith("Tag="), f"not an interval: {line}")
        tag, start, length, largest, payload = fields[0][4:], *map(float, fields[1:4]), fields[4]
        row = expected.pop((start, tag), None)
        demand(row, f"not in the table, or twice: {tag} at {start} s")
        demand(abs(length - (int(row["end_ns"]) - int(row["start_ns"])) / 1e9) < 0.001, f"{tag}: {length} s")
        try:
            histogram = HdrHistogram.decode(payload)
        except Exception as error:
            raise Refused(f"{tag}: {error!r}") from error
        demand(histogram.get_total_count() == int(row["count"]), f"{tag}: {histogram.get_total_count()} values")
        # In an interval the extremes are known as far as the buckets tell.
        exact = row["interval"] == "total"
        for name, value in (("min_ns", histogram.get_min_value()), ("max_ns", histogram.get_max_value())):
            same = histogram.values_are_equivalent(value, int(row[name])) if exact else near(value, int(row[name]))
            demand(same, f"{tag}: {name} is {value}, not {row[name]}")
        demand(near(largest, int(row["max_ns"])), f"{tag}: Interval_Max is {largest}")
        for name, share in SHARES.items():
            # By rank: this reader rounds a percentile to the nearest one, tbv-trace and others round up.
            rank = math.ceil(share * int(row["count"]))
            value = histogram.get_value_at_percentile(100 * rank / int(row["count"]))
            demand(near(value, int(row[name])), f"{tag}: {name} is {value}, not {row[name]}")
    demand(not expected, f"not in the log: {sorted(expected)}")


# OpenMetrics


def openmetrics(path, table, report):
    """Histograms are the table's rows; counters are the report's sums."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        families = {family.name: family for family in text_string_to_metric_families(text)}
    except (ValueError, KeyError) as error:
        raise Refused(f"{error!r}") from error
    histograms = {}
    for name, family in families.items():
        if family.type != "histogram":
            continue
        kind = "call" if name == "tbv_call_duration_seconds" else name.removeprefix("tbv_").removesuffix("_seconds")
        for sample in family.samples:
            labels = dict(sample.labels)
            bound = labels.pop("le", None)
            labels["opcode"] = labels.pop("operation", labels.get("opcode", ""))
            parts = ("pid", "comm", "device", "qpn", "opcode")
            series = histograms.setdefault((kind, *(labels.get(part, "") for part in parts)), {})
            series[bound or sample.name.rpartition("_")[2]] = sample.value
    for row in rows(table):
        key = tuple(row[part] for part in ("kind", "pid", "comm", "device", "qpn", "opcode"))
        series = histograms.pop(key, None)
        demand(series, f"no histogram of {key}")
        count, total = int(row["count"]), int(row["sum_ns"]) / 1e9
        demand(series["count"] == series["+Inf"] == count, f"{key}: {series['count']} values, not {count}")
        demand(abs(series["sum"] - total) <= 1e-9 * max(total, 1), f"{key}: the sum is {series['sum']}")
        below = [value for bound, value in series.items() if bound[0].isdigit() and float(bound) * 1e9 < int(row["min_ns"])]
        demand(not any(below), f"{key}: something is below the smallest")
    demand(not histograms, f"not in the table: {list(histograms)}")
    counted = Counter()
    for name, family in families.items():
        if family.type in ("counter", "gauge"):
            for sample in family.samples:
                part = sample.labels.get("reason") or sample.labels.get("kind")
                counted[name if part is None else f"{name}/{part}"] += sample.value
    report = json.loads(Path(report).read_text(encoding="utf-8"))
    expected = sums(report)
    for name in sorted(expected.keys() | counted.keys()):
        demand(expected.get(name) == counted.get(name), f"{name}: {counted.get(name)}, not {expected.get(name)}")
    info = families["tbv_environment"].samples[0].labels
    demand(info["kernel"] == report["environment"]["kernel"], "another kernel")


def sums(report):
    """What the counters have to add up to, by their names."""
    total = Counter()
    for qp in report["queue_pairs"]:
        for name in (
            "posted", "completed", "unsignalled", "unknown", "unsignalled_failed", "overflowed", "forgotten", "rnr",
            "credit_stalls",
        ):
            total["tbv_" + name] += qp[name]
        for reason in ("timeout", "sequence_error", "rnr"):
            total["tbv_retransmits/" + reason] += qp["retransmits_" + reason]
    for cq in report["completions"]:
        for name in (
            "produced", "consumed", "consumed_by_ioctl", "consumed_in_user_space", "purged", "failed", "overflows",
            "entries", "polled",
        ):
            total["tbv_cq_" + name] += cq[name] or 0
        for kind in ("hit", "empty", "overflow"):
            total["tbv_cq_polls/" + kind] += cq["polls_" + kind] or 0
    for fell in report["fall_backs"]:
        total["tbv_fall_backs/" + fell["reason"]] += fell["queues"]
    for work in report["work_requests"]:
        total["tbv_work_requests_posted"] += work["posted"]
    for kind, count in report["loss"].items():
        if kind != "total":
            total["tbv_loss/" + kind] += count
    return dict(total)


# Perfetto


def perfetto(path):
    """A trace whose events lie on tracks that are described, each begun as often as ended."""
    trace = proto.Trace()
    try:
        trace.ParseFromString(Path(path).read_bytes())
    except Exception as error:
        raise Refused(f"{error!r}") from error
    demand(trace.packet, "no packet")
    described = {p.track_descriptor.uuid for p in trace.packet if p.HasField("track_descriptor")}
    demand(described, "no track")
    events = [packet for packet in trace.packet if packet.HasField("track_event")]
    demand(events, "no event")
    depth = Counter()
    kinds = proto.TrackEvent
    # The events of a track count in the order of their time, and those of one time in that of the file.
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        event = packet.track_event
        demand(packet.HasField("timestamp"), "an event without a time")
        demand(event.HasField("track_uuid"), "an event without a track")
        demand(event.track_uuid in described, f"no descriptor of track {event.track_uuid}")
        if event.type == kinds.TYPE_SLICE_BEGIN:
            depth[event.track_uuid] += 1
        elif event.type == kinds.TYPE_SLICE_END:
            depth[event.track_uuid] -= 1
            demand(depth[event.track_uuid] >= 0, f"track {event.track_uuid}: an end without a begin")
    open_tracks = [uuid for uuid, slices in depth.items() if slices]
    demand(not open_tracks, f"a begin without an end on tracks {open_tracks}")


# Broken files


def refuses(name, check, broken, *others):
    """A reader that takes a broken file proves nothing."""
    with tempfile.NamedTemporaryFile(suffix=".broken") as file:
        file.write(broken)
        file.flush()
        try:
            check(file.name, *others)
        except Refused:
            return
    raise Refused(f"{name}: a broken file was taken for good")


def changed(data, pattern, replacement):
    new, times = re.subn(pattern, replacement, data, count=1)
    demand(times == 1 and new != data, f"nothing to break by {pattern!r}")
    return new


def self_test_hdr(path, table):
    good = Path(path).read_bytes()
    lines = good.splitlines(keepends=True)
    broken = {
        "cut off": good[: len(good) - 20],
        "a character of a histogram": changed(good, rb"HISTF[^\n]{40}", lambda m: m[0][:-1] + b"*"),
        "an interval left out": b"".join(lines[:-1]),
        "an interval twice": good + lines[-1],
        "two histograms exchanged": swapped(lines),
        "another tag": changed(good, rb"Tag=post", b"Tag=past"),
        "a space in a tag": changed(good, rb"Tag=", b"Tag= "),
        "another version": changed(good, rb"version 1\.3", b"version 1.2"),
        "another start": changed(good, rb",0\.000,", b",0.500,"),
    }
    for name, data in broken.items():
        refuses(f"{path}: {name}", hdr, data, table)


def swapped(lines):
    """The payloads of the first and the last interval in each other's place."""
    places = [i for i, line in enumerate(lines) if line.startswith(b"Tag=")]
    (a, b), lines = (places[0], places[-1]), list(lines)
    heads = {i: lines[i].rpartition(b",") for i in (a, b)}
    lines[a], lines[b] = heads[a][0] + b"," + heads[b][2], heads[b][0] + b"," + heads[a][2]
    return b"".join(lines)


def self_test_openmetrics(path, table, report):
    good = Path(path).read_bytes()
    broken = {
        "no end": good.removesuffix(b"# EOF\n"),
        "something after the end": good + b"tbv_x 1\n",
        "a quote too many": changed(good, rb'comm="', b'comm=""'),
        "a bucket that shrinks": changed(good, rb'(le="\+Inf"[^\n]*\} )\d+', rb"\g<1>0"),
        "another count": changed(good, rb"(_count\{[^\n]*\} )\d+", rb"\g<1>7"),
        "another sum": changed(good, rb"(_sum\{[^\n]*\} )", rb"\g<1>1"),
        "another counter": changed(good, rb"(tbv_posted_total\{[^\n]*\} )", rb"\g<1>1"),
        "another loss": changed(good, rb"(tbv_loss_total\{[^\n]*\} )", rb"\g<1>1"),
        "a counter without its suffix": changed(good, rb"\ntbv_rnr_total\{", b"\ntbv_rnr{"),
        "another unit": changed(good, rb"(# UNIT [^\n ]+ )seconds", rb"\g<1>hours"),
        "a series left out": changed(good, rb"tbv_completed_total\{[^\n]*\n", b""),
    }
    for name, data in broken.items():
        refuses(f"{path}: {name}", openmetrics, data, table, report)


def self_test_perfetto(good, path):
    def without(trace, keep):
        packets = [packet for packet in trace.packet if keep(packet)]
        return proto.Trace(packet=packets)

    def first(trace, kind):
        return next(p for p in trace.packet if p.HasField("track_event") and p.track_event.type == kind)

    trace = proto.Trace.FromString(good)
    begin, end = (first(trace, kind) for kind in (proto.TrackEvent.TYPE_SLICE_BEGIN, proto.TrackEvent.TYPE_SLICE_END))
    untimed = without(trace, lambda packet: packet != begin)
    untimed.packet.add().CopyFrom(begin)
    untimed.packet[-1].ClearField("timestamp")
    broken = {
        "empty": b"",
        "cut off": good[:-1],
        "no track": without(trace, lambda packet: not packet.HasField("track_descriptor")).SerializeToString(),
        "no event": without(trace, lambda packet: not packet.HasField("track_event")).SerializeToString(),
        "no begin": without(trace, lambda packet: packet != begin).SerializeToString(),
        "no end": without(trace, lambda packet: packet != end).SerializeToString(),
        "no time": untimed.SerializeToString(),
    }
    for name, data in broken.items():
        refuses(f"{path}: {name}", perfetto, data)


def main(arguments):
    (folder,) = (Path(word) for word in arguments)
    whole, parts = folder / "hist.csv", folder / "hist-intervals.csv"
    for log, table in ((folder / "hist.hlog", whole), (folder / "hist-intervals.hlog", parts)):
        hdr(log, table)
        self_test_hdr(log, table)
        print(f"{log.name}: {len(rows(table))} histograms read, broken ones refused")
    metrics = folder / "hist.om", whole, folder / "hist.json"
    openmetrics(*metrics)
    self_test_openmetrics(*metrics)
    print("hist.om: read, broken ones refused")
    timeline = folder / "timeline.pftrace"
    demand(timeline.is_file(), f"no {timeline}")
    perfetto(timeline)
    self_test_perfetto(timeline.read_bytes(), timeline)
    print("timeline.pftrace: read, broken ones refused")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Refused as error:
        sys.exit(f"formats: {error}")
