//! Every form of output against a file that a person has looked at. `TBV_BLESS=1 cargo test -p tbv-trace` writes them
//! anew; look at the difference.

use std::{fs, path::PathBuf};

use tbv_core::{
    Budget, Report,
    report::{FallBacks, Interval},
};

use crate::{
    check::{annotations, junit, markdown, render},
    cli::{Format, ShowArgs},
    diff::Difference,
    output,
    stream_line::{self, Begin, Call, End, Line, Lost},
    text, timeline,
};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

pub(crate) fn same(name: &str, made: &str) {
    if std::env::var_os("TBV_BLESS").is_some() {
        fs::write(file(name), made).unwrap();
    }
    let golden = fs::read_to_string(file(name)).unwrap_or_default();
    assert!(golden == made, "{name} differs; this was made:\n{made}");
}

fn same_bytes(name: &str, made: &[u8]) {
    if std::env::var_os("TBV_BLESS").is_some() {
        fs::write(file(name), made).unwrap();
    }
    let golden = fs::read(file(name)).unwrap_or_default();
    let differs = golden.iter().zip(made).position(|(a, b)| a != b).unwrap_or(golden.len().min(made.len()));
    assert!(golden == made, "{name} differs from byte {differs} on; {} bytes were made", made.len());
}

pub(crate) fn report(name: &str) -> Report {
    Report::read(&file(name)).unwrap()
}

fn shown(report: &Report, format: Format, change: impl Fn(&mut ShowArgs)) -> String {
    let mut show = ShowArgs { format, iterations: None, failed: false, top: None };
    change(&mut show);
    String::from_utf8(output::render(report, &show, true).unwrap()).unwrap()
}

#[test]
fn reports() {
    let whole = report("report.json");
    let mut part = whole.clone();
    part.interval = Some(Interval { number: 3, start_ns: 2_000_000_000, end_ns: 3_000_500_000 });
    part.duration_ns = 1_000_500_000;
    part.exit_status = None;
    same("report.txt", &shown(&whole, Format::Text, |_| {}));
    same("report-iterations.txt", &shown(&whole, Format::Text, |show| show.iterations = Some(1000)));
    same(
        "report-failed-top.txt",
        &shown(&whole, Format::Text, |show| (show.failed, show.top) = (true, Some(1))),
    );
    same("report.json", &shown(&whole, Format::Json, |_| {}));
    same("report.jsonl", &shown(&whole, Format::Jsonl, |_| {}));
    same("report.csv", &shown(&whole, Format::Csv, |_| {}));
    same("interval.txt", &shown(&part, Format::Text, |_| {}));
    same("interval.csv", &shown(&part, Format::Csv, |_| {}));
    let mut probed = whole.clone();
    probed.environment.probes = vec!["/opt/a\u{1b}b/libusb4_rdma-rdmav57.so".to_owned()];
    let cq = &mut probed.completions[1];
    (cq.polls_hit, cq.polls_empty, cq.polls_overflow, cq.polled) =
        (Some(690), Some(12_345), Some(1), Some(696));
    let reason = "not_offered".to_owned();
    probed.fall_backs = vec![FallBacks { pid: 4243, comm: "evil\u{1b}[2J".to_owned(), reason, queues: 2 }];
    same("report-probes.txt", &shown(&probed, Format::Text, |_| {}));
    let mut unfinished = whole;
    unfinished.calls.clear();
    unfinished.environment.devices_known = false;
    unfinished.ran_at_begin = 3;
    unfinished.environment.existing_left_out = Some("2 whose creators have ended".to_owned());
    same("report-empty.txt", &shown(&unfinished, Format::Text, |_| {}));
}

#[test]
fn differences() {
    let (a, b) = (report("report.json"), report("other.json"));
    let other = Difference::between([&a, &b]);
    same("diff.txt", &text::difference(&other, Some(1000)));
    same("diff.json", &(serde_json::to_string_pretty(&other).unwrap() + "\n"));
    same("diff-same.txt", &text::difference(&Difference::between([&a, &a]), None));
}

#[test]
fn verdicts() {
    let budget = Budget::read(&file("budget.toml")).unwrap();
    let mut report = report("check.json");
    let judge = |report: &Report, strict| budget.judge(report, 1000, strict).unwrap();
    let exceeded = judge(&report, true);
    same("check-exceeded.txt", &render(&exceeded));
    same("check-exceeded.json", &(serde_json::to_string_pretty(&exceeded).unwrap() + "\n"));
    same("check-exceeded.xml", &junit(&exceeded));
    same("check-exceeded.md", &markdown(&exceeded));
    same("check-exceeded.github", &annotations(&exceeded));

    report.loss.rows_full = 7;
    report.loss.total = 7;
    let lost = judge(&report, true);
    same("check-lost.txt", &render(&lost));
    same("check-lost.xml", &junit(&lost));
    same("check-lost.md", &markdown(&lost));
    same("check-lost.github", &(annotations(&lost) + &annotations(&judge(&report, false))));

    report.exit_status = Some(1);
    report.completions[0].produced -= 500;
    let unproven = judge(&report, false);
    same("check-unproven.txt", &render(&unproven));
    same("check-unproven.xml", &junit(&unproven));
    same("check-unproven.md", &markdown(&unproven));
    same("check-unproven.github", &annotations(&unproven));
}

#[test]
fn streams() {
    let report = report("report.json");
    let call = |errno: Option<&'static str>, latency_ns, cq_handle| {
        Line::Call(Call {
            time_ns: 5_000_123_456,
            pid: 4242,
            ns_pid: Some(17),
            tid: 4243,
            comm: "evil\u{1b}[2J".into(),
            device: "rxe0".into(),
            entry: "ioctl".into(),
            op: "POLL_CQ".into(),
            errno: errno.map(Into::into),
            latency_ns,
            cq_handle,
            qp_handle: None,
            srq_handle: None,
        })
    };
    let lines = [
        Line::Begin(Begin {
            schema_version: 1,
            monotonic_ns: 3_999_999_999,
            realtime_ns: 1_700_000_000_000_000_000,
            filters: vec!["--pid 4242".to_owned(), "--failed".to_owned()],
            environment: report.environment.clone(),
        }),
        call(None, Some(1_540), Some(3)),
        call(Some("EINVAL"), None, None),
        Line::Lost(Lost { count: 77 }),
        Line::End(End { calls: 79, delivered: 2, lost: 77, loss: report.loss }),
    ];
    let mut plain = Vec::new();
    lines.iter().for_each(|line| text::event(line, 3_999_999_999, &mut plain).unwrap());
    same("events.txt", &String::from_utf8(plain).unwrap());
    let json: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    same("events.jsonl", &json.concat());
}

/// Perfetto, or its Python package, shows what is in it.
#[test]
fn timelines() {
    same_bytes("timeline.pftrace", &timeline::fixture());
}

#[test]
fn json_is_what_the_schemas_say() {
    let valid = |schema: schemars::Schema, text: &str| {
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {text}");
        assert!(
            !validator.is_valid(&serde_json::json!({"schema_version": "one"})),
            "a schema that takes anything"
        );
    };
    let golden = |name| fs::read_to_string(file(name)).unwrap();
    valid(Report::json_schema(), &golden("report.json"));
    valid(Report::json_schema(), &golden("report.jsonl"));
    for budget in ["budget.toml", "../../../ci/mapped.toml", "../../../ci/ioctl.toml"] {
        let value: serde_json::Value = toml::from_str(&golden(budget)).unwrap();
        valid(Budget::json_schema(), &value.to_string());
    }
    golden("events.jsonl").lines().for_each(|line| valid(stream_line::json_schema(), line));
}
