//! What the exit status says; also printed by `--help`.

use std::{
    io::{self, Write as _, stderr},
    process::ExitCode,
};

use tbv_core::display::printable;

/// Wrong usage, or a recording that cannot be used.
pub(crate) const USAGE: u8 = 2;
/// Nothing can be measured here; the message says what to do.
pub(crate) const CANNOT_MEASURE: u8 = 3;
/// Data was lost, and `--strict` was given.
pub(crate) const LOST: u8 = 4;
/// A part of tbv-top has failed; what it said is on standard error.
pub(crate) const PANICKED: u8 = 101;

/// Says something on standard error, if anybody can hear it.
pub(crate) fn say(words: &str) {
    let lines: Vec<String> = words.lines().map(printable).collect();
    let _ = writeln!(stderr(), "tbv-top: {}", lines.join("\n"));
}

/// Prints an error and gives its status. A reader that went away is no error.
pub(crate) fn explain(error: &anyhow::Error) -> ExitCode {
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(closed)) {
        return ExitCode::SUCCESS;
    }
    say(&format!("{error:#}"));
    ExitCode::from(match error.downcast_ref::<tbv_core::Error>() {
        Some(tbv_core::Error::Report { .. }) | None => USAGE,
        Some(_) => CANNOT_MEASURE,
    })
}

/// Ends as the signal would have ended it: whoever waits for us is told so.
pub(crate) fn by_signal(signal: i32) -> ExitCode {
    // SAFETY: sets the default action, and sends ourselves the signal.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
