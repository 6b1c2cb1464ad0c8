//! Recordings that are whole, and those that are not.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tbv_top::source::replay;

use common::recording;

/// The one that is in the repository.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/demo.jsonl");

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tbv-top")).args(words).stdin(Stdio::null()).output().unwrap()
}

/// What a run that succeeds prints.
fn printed(words: &[&str]) -> String {
    let output = run(words);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("tbv-top-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        TemporaryFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn all_forms_have_the_same_totals() {
    let whole = replay::read(Path::new(recording())).unwrap().whole.unwrap();
    let (calls, errors) = whole.totals();
    assert!(calls > 0);
    let text = printed(&["--replay", recording(), "--once"]);
    assert!(text.contains(&format!("total    {calls} calls, {errors} errors\n")), "{text}");
    assert!(text.contains("loss     none"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&printed(&["--replay", recording(), "--once", "-f", "json"])).unwrap();
    let sum = |rows: &serde_json::Value, field: &str| -> u64 {
        rows.as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
    };
    assert_eq!((sum(&json["processes"], "calls"), sum(&json["operations"], "count")), (calls, calls));
    let csv = printed(&[
        "--replay",
        recording(),
        "--once",
        "-f",
        "csv",
        "--view",
        "operations",
        "--columns",
        "op,count",
    ]);
    let counts = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), calls);
    assert!(csv.starts_with("interval,start_ns,end_ns,loss_total,op,count\n"), "{csv}");
    // Every interval, and all of them.
    let lines = printed(&["--replay", recording(), "-f", "jsonl"]);
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, intervals) = lines.split_last().unwrap();
    assert!(last["interval"].is_null() && intervals.len() > 5);
    let calls_of = |line: &serde_json::Value| sum(&line["processes"], "calls");
    assert_eq!((calls_of(last), intervals.iter().map(calls_of).sum::<u64>()), (calls, calls));
    let array: serde_json::Value =
        serde_json::from_str(&printed(&["--replay", recording(), "--batch", "-f", "json"])).unwrap();
    assert_eq!(array.as_array().unwrap().len(), lines.len());
}

#[test]
fn the_recording_of_the_repository_is_whole() {
    let demo = replay::read(Path::new(DEMO)).unwrap();
    let calls: u64 = demo.intervals.iter().map(|report| report.totals().0).sum();
    let whole = demo.whole.unwrap();
    assert!(demo.intervals.len() >= 10 && calls > 1_000);
    assert_eq!((whole.totals().0, whole.loss.total), (calls, 0));
    let json: serde_json::Value =
        serde_json::from_str(&printed(&["--replay", DEMO, "--once", "-f", "json"])).unwrap();
    let names: Vec<&str> =
        json["processes"].as_array().unwrap().iter().filter_map(|row| row["comm"].as_str()).collect();
    assert!(names.contains(&"ib_send_lat"), "{names:?}");
    let paths = json["completion_queues"].as_array().unwrap().iter().filter_map(|row| row["path"].as_str());
    let paths: std::collections::BTreeSet<&str> = paths.collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["ioctl", "mapped"]);
}

#[test]
fn a_recording_can_be_entered_anywhere_and_filtered() {
    let at = |seconds: &str| -> serde_json::Value {
        serde_json::from_str(&printed(&["--replay", recording(), "--once", "-f", "json", "--at", seconds]))
            .unwrap()
    };
    assert_eq!(at("0")["interval"]["number"], 1);
    assert!(at("4")["interval"]["number"].as_u64() > Some(1));
    let filtered =
        printed(&["--replay", recording(), "--once", "--view", "operations", "--filter", "op:POST_SEND"]);
    assert!(filtered.contains("POST_SEND") && !filtered.contains("POST_RECV"), "{filtered}");
    let refused = run(&["--replay", recording(), "--once", "--columns", "nonsense"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_picture_is_made_by_a_command() {
    let file = TemporaryFile::new("picture.svg", b"");
    assert_eq!(
        printed(&["--replay", recording(), "--at", "4", "--picture", file.path(), "--size", "100x30"]),
        ""
    );
    let picture = fs::read_to_string(&file.0).unwrap();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("ib_send_lat") && picture.contains("POLL_CQ"));
    // Not over the recording that it is made of, by whatever name.
    let copy = TemporaryFile::new("copy.jsonl", &fs::read(recording()).unwrap());
    let link = TemporaryFile::new("link.jsonl", b"");
    fs::remove_file(&link.0).unwrap();
    fs::hard_link(&copy.0, &link.0).unwrap();
    let refused = run(&["--replay", copy.path(), "--picture", link.path()]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(fs::read(&copy.0).unwrap(), fs::read(recording()).unwrap());
}

#[test]
fn what_cannot_be_used_is_said() {
    let demo = fs::read(recording()).unwrap();
    let newer = String::from_utf8_lossy(&demo).replacen("\"schema_version\":1", "\"schema_version\":2", 1);
    let cut = &demo[..demo.len() - 100];
    let mut corrupt = demo.clone();
    corrupt[demo.len() / 2..demo.len() / 2 + 40].fill(b'#');
    for (name, bytes, words) in [
        ("newer", newer.as_bytes(), "schema version 2"),
        ("cut", cut, "cut off"),
        ("corrupt", &corrupt, "not a tbv-trace report"),
        ("empty", b"", "empty"),
        ("other", b"hello\n", "not a tbv-trace report"),
        ("two", &demo.repeat(2), "comes another report"),
    ] {
        let file = TemporaryFile::new(name, bytes);
        for mode in ["--batch", "--once", "--picture=/dev/null"] {
            let output = run(&["--replay", file.path(), mode]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
            assert!(said.contains(words) && said.contains(file.path()), "{name}: {said}");
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (program, file) = (env!("CARGO_BIN_EXE_tbv-top"), recording());
    let script = format!("{program} --replay {file} -f jsonl | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}");
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn what_is_made_from_tables_is_there() {
    let fields = printed(&["fields"]);
    assert!(fields.contains("calls_per_completion") && fields.contains("occupancy_percent"));
    let man = printed(&["man"]);
    for part in [".SH KEYS", ".SH COLUMNS", "Shift\\-Tab", "calls_per_completion"] {
        assert!(man.contains(part), "{part}");
    }
    assert!(printed(&["completions", "bash"]).contains("--replay"));
}
