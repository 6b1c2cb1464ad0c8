//! The program as it is called, as far as that needs no kernel.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/report.json");
/// A report that is beyond this budget.
const CHECKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/check.json");
const BUDGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/budget.toml");

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
        let check = vec!["check", "--iterations", "1000", "--budget", BUDGET];
        for words in [vec!["report"], vec!["diff", GOLDEN], check] {
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
fn of_two_results_in_a_file_the_second_is_not_taken_for_the_first() {
    let file = temporary("two");
    fs::write(&file, fs::read_to_string(GOLDEN).unwrap().repeat(2)).unwrap();
    let output = run(&["report", file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    let (stdout, stderr) = texts(&output);
    assert_eq!((stdout, output.status.code()), (texts(&run(&["report", GOLDEN])).0, Some(2)), "{stderr}");
    assert!(stderr.contains("only the first"), "{stderr}");
}

#[test]
fn intervals_without_a_result_of_the_whole_time_are_added_up() {
    let mut report: serde_json::Value = serde_json::from_str(&fs::read_to_string(GOLDEN).unwrap()).unwrap();
    let (calls, lost) =
        (report["totals"]["count"].as_u64().unwrap(), report["loss"]["total"].as_u64().unwrap());
    assert!(calls > 0 && lost > 0);
    let mut text = String::new();
    for number in [1, 2] {
        report["interval"] = serde_json::json!({"number": number, "start_ns": number - 1, "end_ns": number});
        if number == 2 {
            // What is lost in one interval only is lost of the whole.
            for loss in report["loss"].as_object_mut().unwrap().values_mut() {
                *loss = 0.into();
            }
        }
        text += &format!("{report}\n");
    }
    let file = temporary("cut");
    fs::write(&file, &text).unwrap();
    let words = ["hist", "--from", file.to_str().unwrap(), "--strict", "-f", "json"];
    let output = run(&words);
    let (stdout, stderr) = texts(&output);
    fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("added up"), "{stderr}");
    let sum: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&sum["interval"], sum["totals"]["count"].as_u64()),
        (&serde_json::Value::Null, Some(2 * calls))
    );
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
    for command in [
        "",
        "-run",
        "-attach",
        "-events",
        "-timeline",
        "-report",
        "-diff",
        "-check",
        "-schema",
        "-doctor",
        "-completions",
        "-man",
    ] {
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

#[test]
fn a_timeline_needs_someone_to_trace_and_a_file_that_can_be_written() {
    for (words, message) in [
        (&["-o", "x.pftrace"][..], "what is to be measured?"),
        (&["-a", "-o", "/no/such/dir/x"], "cannot write /no/such/dir/x"),
        (&["-o", "/no/such/dir/x", "--", "true"], "cannot write /no/such/dir/x"),
    ] {
        let output = run(&[&["timeline"], words].concat());
        let (stdout, stderr) = texts(&output);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{stderr}");
    }
}

/// Status and both texts of `check` on a changed report and budget.
fn check(
    report: &dyn Fn(&str) -> String,
    budget: &dyn Fn(&str) -> String,
    words: &[&str],
) -> (i32, String, String) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let files = [temporary(&format!("{number}.json")), temporary(&format!("{number}.toml"))];
    fs::write(&files[0], report(&fs::read_to_string(CHECKED).unwrap())).unwrap();
    fs::write(&files[1], budget(&fs::read_to_string(BUDGET).unwrap())).unwrap();
    let [report, budget] = files.each_ref().map(|file| file.to_str().unwrap());
    let output = run(&[&["check", report, "--budget", budget, "--iterations", "1000"], words].concat());
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    let (stdout, stderr) = texts(&output);
    (output.status.code().unwrap(), stdout, stderr)
}

/// Room for all that the report holds.
fn roomy(budget: &str) -> String {
    budget.replace("at_most = 2.2", "at_most = 9").replace("equal = 0", "at_most = 4000")
}

#[test]
fn a_budget_is_kept_exceeded_or_not_judged() {
    let same = |text: &str| text.to_owned();
    let lossy = |text: &str| {
        text.replace("\"total\": 0", "\"total\": 7").replace("\"rows_full\": 0", "\"rows_full\": 7")
    };
    let failed = |text: &str| text.replace("\"exit_status\": 0", "\"exit_status\": 1");
    let idle = |text: &str| text.replace("\"produced\": 1000", "\"produced\": 999");
    let busy = |text: &str| text.replace("\"produced\": 1000", "\"produced\": 1001");
    let (pass, breach, unproven) = ("result   passed", "result   EXCEEDED", "result   CANNOT JUDGE");
    type Change<'a> = &'a dyn Fn(&str) -> String;
    let cases: [(Change<'_>, Change<'_>, &[&str], i32, &str); 11] = [
        (&same, &roomy, &[], 0, pass),
        (&same, &roomy, &["--strict"], 0, pass),
        (&same, &same, &[], 1, breach),
        (&lossy, &roomy, &[], 0, "LOSS     7: rows_full 7"),
        (&lossy, &same, &[], 1, breach),
        (&lossy, &same, &["--strict"], 4, "result   LOST: 7 events"),
        (&failed, &roomy, &[], 3, unproven),
        (&idle, &roomy, &[], 3, unproven),
        (&busy, &roomy, &[], 3, unproven),
        (&busy, &roomy, &["--expect", "completions=2N+2"], 0, pass),
        (&same, &roomy, &["--iterations", "999"], 2, ""),
    ];
    for (report, budget, words, expected, said) in cases {
        let (status, stdout, stderr) = check(report, budget, words);
        assert_eq!(status, expected, "{words:?}: {stdout}{stderr}");
        assert!(stdout.contains(said), "{stdout}");
        assert_eq!(stderr.is_empty(), expected == 0, "{stderr}");
    }
    let (_, stdout, _) = check(&same, &same, &[]);
    assert_eq!(stdout.lines().filter(|line| line.starts_with("BREACH")).count(), 3, "{stdout}");
}

#[test]
fn a_recording_is_not_written_over_by_what_is_made_of_it() {
    let file = std::env::temp_dir().join(format!("tbv-from-{}.jsonl", std::process::id()));
    let text = std::fs::read_to_string(CHECKED).unwrap();
    std::fs::write(&file, &text).unwrap();
    let link = file.with_extension("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for result in [&file, &link] {
        let output =
            run(&["hist", "--from", &file.to_string_lossy(), "-f", "csv", "-o", &result.to_string_lossy()]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(texts(&output).1.contains("named twice"), "{output:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    std::fs::remove_file(link).unwrap();
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_library_is_not_written_over_by_what_is_traced_with_its_probes() {
    let file = temporary("library");
    fs::write(&file, "library").unwrap();
    let name = file.to_str().unwrap();
    let usdt = format!("--usdt={name}");
    for words in [
        vec!["run", &usdt, "-o", name],
        vec!["hist", &usdt, "--samples", name],
        vec!["record", &usdt, "-o", name],
        vec!["timeline", &usdt, "-o", name],
    ] {
        let output = run(&[&words[..], &["--", "true"]].concat());
        assert!(texts(&output).1.contains("named twice"), "{words:?}: {output:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "library", "{words:?}");
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn wrong_usage_of_check_is_refused() {
    let same = |text: &str| text.to_owned();
    let no_limits = |text: &str| text.split("[[limit]]").next().unwrap().to_owned();
    let no_work = |text: &str| text.replace("[work]", "[work]\npots_send = \"N\"");
    let later = |text: &str| text.replace("budget_version = 1", "budget_version = 2");
    for (budget, words, message) in [
        (&no_limits as &dyn Fn(&str) -> String, &[][..], "it has no [[limit]]"),
        (&no_work, &[], "unknown field `pots_send`"),
        (&later, &[], "budget version 2"),
        (&same, &["--expect", "completions=many"], "--expect: `many` is no count"),
        (&same, &["--expect", "post_send=N", "--expect", "post_send=2N"], "expected twice"),
        (&same, &["--github", "-f", "json"], "not JSON"),
        (&same, &["--junit", "check.out", "--markdown", "check.out"], "check.out is named twice"),
        (&same, &["--junit", CHECKED, "--markdown", CHECKED], "named twice"),
        (&same, &["--junit", "/no/such/dir/x"], "/no/such/dir/x"),
        (&same, &["--markdown", "/dev/full"], "/dev/full"),
    ] {
        let (status, stdout, stderr) = check(&same, budget, words);
        assert_eq!((status, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{stderr}");
    }
    for n in ["0", "-1", "x", ""] {
        let output = run(&["check", CHECKED, "--budget", BUDGET, &format!("--iterations={n}")]);
        assert_eq!(output.status.code(), Some(2));
        assert!(texts(&output).1.contains("--iterations"), "{n}: {output:?}");
    }
    let output = run(&["check", CHECKED, "--budget", "/no/such/budget", "--iterations", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("/no/such/budget: No such file"));
}

#[test]
fn a_breach_stays_one_without_a_reader() {
    let program = env!("CARGO_BIN_EXE_tbv-trace");
    let words = format!("{program} check {CHECKED} --budget {BUDGET} --iterations 1000");
    // The reader is gone before anything is written.
    let script = format!("{{ sleep 0.3; {words}; echo $? >&2; }} | true");
    let (_, stderr) = texts(&Command::new("sh").args(["-c", &script]).output().unwrap());
    assert!(stderr.ends_with("1\n"), "{stderr}");
}

#[test]
fn results_of_check_go_to_files_too() {
    let same = |text: &str| text.to_owned();
    let [xml, markdown] = ["check.xml", "check.md"].map(temporary);
    // What an earlier run left is gone, also where it was longer.
    fs::write(&xml, "x".repeat(100_000)).unwrap();
    let words = ["--junit", xml.to_str().unwrap(), "--markdown", markdown.to_str().unwrap(), "--github"];
    let (status, stdout, _) = check(&same, &same, &words);
    let [made_xml, made_markdown] = [&xml, &markdown].map(|file| fs::read_to_string(file).unwrap());
    [xml, markdown].iter().for_each(|file| fs::remove_file(file).unwrap());
    assert_eq!(status, 1);
    let golden = |name: &str| {
        fs::read_to_string(Path::new(CHECKED).with_file_name(format!("check-exceeded.{name}"))).unwrap()
    };
    assert_eq!(made_xml, golden("xml"));
    assert_eq!(made_markdown, golden("md"));
    assert_eq!(stdout, golden("txt") + &golden("github"));
}
