//! The real program in a pseudo-terminal, showing a recording.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

#[path = "../common/mod.rs"]
mod common;
mod pty;

use std::{fs, thread, time::Duration};

use common::recording;
use pty::{Pty, Status};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tbv-top");

fn start_with(words: &[&str], variables: &[(&str, &str)]) -> Pty {
    let words = [&["--replay", recording()], words].concat();
    Pty::start(PROGRAM, &words, variables)
}

fn start() -> Pty {
    let pty = start_with(&[], &[]);
    pty.wait_for("REPLAY");
    assert!(pty.is_raw());
    pty
}

#[test]
fn every_way_to_end_gives_the_terminal_back() {
    for key in ["q", "\u{3}"] {
        let mut pty = start();
        pty.press(key);
        assert_eq!(pty.status(), Status::Exited(0), "{key:?}");
        pty.assert_restored();
    }
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        let mut pty = start();
        pty.signal(signal);
        assert_eq!(pty.status(), Status::Signalled(signal));
        pty.assert_restored();
    }
}

#[test]
fn a_terminal_that_goes_is_an_end_by_hang_up() {
    for _ in 0..5 {
        let mut pty = start();
        pty.hang_up();
        assert_eq!(pty.status(), Status::Signalled(libc::SIGHUP));
    }
}

#[test]
fn a_panic_gives_the_terminal_back_and_is_read() {
    let mut pty = start_with(&[], &[("TBV_TOP_PANIC", "1")]);
    assert_eq!(pty.status(), Status::Exited(101));
    pty.wait_for("injected");
    pty.assert_restored();
    let output = pty.output();
    assert!(output.find("injected") > output.rfind("\u{1b}[?1049l"), "said on the screen that is gone");
}

/// The shell has the terminal while it is stopped, and its `fg` brings it back.
#[test]
fn it_stops_and_goes_on() {
    let script = format!(
        "set -m; {PROGRAM} --replay {}; echo stopped $?; read line; fg >/dev/null; echo ended $?",
        recording()
    );
    for by_key in [false, true] {
        let mut pty = Pty::start("/bin/bash", &["-c", &script], &[]);
        pty.wait_for("REPLAY");
        if by_key {
            pty.press("\u{1a}");
        } else {
            let shell = pty.pid();
            let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
            // SAFETY: a child of the shell, which it waits for.
            assert_eq!(unsafe { libc::kill(children.trim().parse().unwrap(), libc::SIGTSTP) }, 0);
        }
        pty.wait_for(&format!("stopped {}", 128 + libc::SIGTSTP));
        pty.assert_restored();
        let shown = pty.output().len();
        pty.press("\n");
        pty.wait_for_after(shown, "\u{1b}[?1049h");
        pty.wait_for_after(shown, "REPLAY");
        assert!(pty.is_raw());
        pty.press("q");
        pty.wait_for_after(shown, "ended 0");
        pty.assert_restored();
        assert_eq!(pty.status(), Status::Exited(0));
    }
}

#[test]
fn where_no_shell_could_let_it_go_on_it_does_not_stop() {
    for by_key in [false, true] {
        let mut pty = start();
        let shown = pty.output().len();
        if by_key {
            pty.press("\u{1a}");
        } else {
            pty.signal(libc::SIGTSTP);
        }
        pty.wait_for_after(shown, "REPLAY");
        pty.press("q");
        assert_eq!(pty.status(), Status::Exited(0));
        pty.assert_restored();
    }
}

#[test]
fn two_hundred_resizes() {
    let mut pty = start();
    // A sequence that visits all parts of the range, without a generator of random numbers.
    let mut state = 12_345_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (state >> 16) % below
    };
    let views = ["1", "2", "3", "4", "?", "\u{1b}", "\r", "t"];
    for number in 0..200 {
        let (columns, rows) = (1 + random(200) as u16, 1 + random(60) as u16);
        pty.resize(columns, rows);
        if number % 7 == 0 {
            pty.press(views[random(views.len() as u32) as usize]);
        }
        thread::sleep(Duration::from_millis(u64::from(random(12))));
    }
    pty.resize(132, 40);
    let shown = pty.output().len();
    pty.press("\u{c}");
    pty.wait_for_after(shown, "tbv-top");
    pty.press("q");
    assert_eq!(pty.status(), Status::Exited(0));
    pty.assert_restored();
}

#[test]
fn keys_reach_the_views() {
    let mut pty = start_with(&["--at", "1"], &[]);
    pty.wait_for("PAUSED");
    // No Esc: with what follows at once, that is a key with Alt.
    for (key, shown) in [("2", "PRODUCED"), ("3", "LINK"), ("?", "Shift-Tab"), ("?", "LINK"), ("1\r", "goes")]
    {
        pty.press(key);
        pty.wait_for_word(shown);
    }
    pty.press("q");
    assert_eq!(pty.status(), Status::Exited(0));
}

#[test]
fn a_plain_terminal_gets_plain_text() {
    let mut pty = start_with(&["--at", "1"], &[("NO_COLOR", "1"), ("LC_ALL", "C")]);
    // What is drawn last.
    pty.wait_for("total");
    pty.press("q");
    assert_eq!(pty.status(), Status::Exited(0));
    let output = pty.output();
    assert!(output.is_ascii(), "{output:?}");
    // 3x and 9x are colours of letters.
    for number in (30..38).chain(90..98) {
        assert!(!output.contains(&format!("\u{1b}[{number}m")), "{number}");
        assert!(!output.contains(&format!("\u{1b}[38;5;{}m", number % 30)), "{number}");
    }
}

#[test]
fn what_cannot_be_shown_is_said_before_the_terminal_is_touched() {
    let untouched = |pty: &Pty| {
        assert!(!pty.output().contains('\u{1b}'), "{:?}", pty.output());
        assert!(!pty.is_raw());
    };
    let mut pty = Pty::start(PROGRAM, &["--replay", "/no/such/file"], &[]);
    assert_eq!(pty.status(), Status::Exited(2));
    pty.wait_for("/no/such/file");
    untouched(&pty);
    let mut pty = Pty::start(PROGRAM, &["--replay", recording(), "--sort", "nonsense"], &[]);
    assert_eq!(pty.status(), Status::Exited(2));
    pty.wait_for("no column nonsense");
    untouched(&pty);
    // This machine has no RDMA, or may not be traced by whoever runs this: either way there is a reason.
    if !std::path::Path::new("/sys/class/infiniband_verbs").exists() {
        let mut pty = Pty::start(PROGRAM, &[], &[]);
        assert_eq!(pty.status(), Status::Exited(3));
        pty.wait_for("no RDMA verbs on this machine");
        untouched(&pty);
    }
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_text() {
    let mut pty = Pty::start(PROGRAM, &["--replay", recording()], &[("TERM", "dumb")]);
    assert_eq!(pty.status(), Status::Exited(0));
    pty.wait_for("loss     none");
    assert!(!pty.output().contains('\u{1b}'));
}
