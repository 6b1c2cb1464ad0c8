//! The program as it is called, as far as that needs no kernel.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/report.json");

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tbv-trace")).args(words).output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tbv-cli-{}-{name}", std::process::id()))
}

#[test]
fn reports_that_cannot_be_used_are_refused() {
    let good = fs::read_to_string(GOLDEN).unwrap();
    let newer = good.replace("\"schema_version\": 1", "\"schema_version\": 99");
    let cut = &good[..good.len() / 2];
    let file = temporary("report");
    for (text, message) in [
        (newer.as_bytes(), "schema version 99"),
        (cut.as_bytes(), "cut off"),
        (b"\x00\xff garbage", "not a tbv-trace report"),
        (b"", "empty"),
    ] {
        fs::write(&file, text).unwrap();
        for words in [vec!["report"], vec!["diff", GOLDEN]] {
            let output = run(&[&words[..], &[file.to_str().unwrap()]].concat());
            let (stdout, stderr) = texts(&output);
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            assert!(stderr.contains(message) && stderr.contains(file.to_str().unwrap()), "{stderr}");
            assert_eq!((stdout.as_str(), stderr.lines().count()), ("", 1));
        }
    }
    fs::remove_file(&file).unwrap();
    let (_, stderr) = texts(&run(&["report", "/no/such/file"]));
    assert!(stderr.contains("/no/such/file: No such file"), "{stderr}");
}

#[test]
fn a_report_can_come_by_a_pipe() {
    let words = format!("cat {GOLDEN} | {} report -", env!("CARGO_BIN_EXE_tbv-trace"));
    let output = Command::new("sh").args(["-c", &words]).output().unwrap();
    assert_eq!(texts(&output).0, texts(&run(&["report", GOLDEN])).0);
    assert!(output.status.success());
}

#[test]
fn a_closed_pipe_is_no_error() {
    for words in ["schema", "report", "man", "completions bash", "doctor"] {
        let file = if words == "report" { GOLDEN } else { "" };
        let program = env!("CARGO_BIN_EXE_tbv-trace");
        let script = format!("{{ {program} {words} {file}; echo $? >&2; }} | true");
        let (_, stderr) = texts(&Command::new("sh").args(["-c", &script]).output().unwrap());
        // Only doctor may have found something missing.
        let fine = stderr == "0\n" || (words == "doctor" && stderr == "3\n");
        assert!(fine, "{words}: {stderr}");
    }
}

#[test]
fn nothing_is_coloured() {
    for words in [vec!["--help"], vec!["report", GOLDEN], vec!["run", "--help"], vec!["doctor"]] {
        let plain = Command::new(env!("CARGO_BIN_EXE_tbv-trace")).args(&words).env("NO_COLOR", "1").output();
        let (stdout, stderr) = texts(&plain.unwrap());
        assert!(!stdout.contains('\u{1b}') && !stderr.contains('\u{1b}'), "{words:?}");
        let (stdout, _) = texts(&run(&words));
        assert!(!stdout.is_empty() && !stdout.contains('\u{1b}'), "{words:?}");
    }
}

#[test]
fn every_command_has_a_manual_page_and_completions() {
    let dir = temporary("man");
    assert!(run(&["man", "--dir", dir.to_str().unwrap()]).status.success());
    for command in
        ["", "-run", "-attach", "-events", "-report", "-diff", "-schema", "-doctor", "-completions", "-man"]
    {
        let page = fs::read_to_string(Path::new(&dir).join(format!("tbv-trace{command}.1"))).unwrap();
        for part in [".TH", ".SH NAME", ".SH SYNOPSIS", ".SH OVERHEAD", "bpftrace"] {
            assert!(page.contains(part), "tbv-trace{command}.1 has no {part}");
        }
    }
    fs::remove_dir_all(&dir).unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _) = texts(&run(&["completions", shell]));
        for word in ["attach", "--cgroup", "ringbuf-size"] {
            assert!(script.contains(word.trim_start_matches('-')), "{shell}: no {word}");
        }
    }
}

#[test]
fn one_json_document_cannot_hold_intervals() {
    let output = run(&["attach", "-a", "-i", "1", "-f", "json"]);
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("-f jsonl"), "{stderr}");
}
