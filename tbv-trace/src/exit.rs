//! What the exit status says; also printed by `--help`.

use std::{io, process::ExitCode};

use crate::text;

/// A budget is exceeded.
pub(crate) const EXCEEDED: u8 = 1;
/// Wrong usage, or a file that can't be read.
pub(crate) const USAGE: u8 = 2;
/// Nothing can be measured here; the message says what to do.
pub(crate) const CANNOT_MEASURE: u8 = 3;
/// Data was lost, and `--strict` was given.
pub(crate) const LOST: u8 = 4;
/// As a shell says it: the command exists and cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// As a shell says it: there is no such command.
pub(crate) const NOT_FOUND: u8 = 127;
/// As a shell says it: added to the number of the signal that ended the command.
pub(crate) const SIGNALLED: i32 = 128;

/// Prints an error and gives its status. A reader that went away is no error.
pub(crate) fn explain(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let text = format!("{error:#}");
    let lines: Vec<String> = text.lines().map(text::printable).collect();
    say!("{}", lines.join("\n"));
    let code = match error.downcast_ref::<tbv_core::Error>() {
        Some(tbv_core::Error::Report { .. } | tbv_core::Error::Budget { .. }) => USAGE,
        Some(_) => CANNOT_MEASURE,
        None => USAGE,
    };
    ExitCode::from(code)
}

/// Whether the reader of our output went away.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(closed))
}

/// The status of a run that gave its result; `code` is that of its command.
pub(crate) fn after(strict: bool, lost: u64, code: Option<i32>) -> ExitCode {
    if strict && lost > 0 {
        say!("{lost} events were lost (see the report), and --strict was given");
        return ExitCode::from(LOST);
    }
    ExitCode::from(u8::try_from(code.unwrap_or(0)).unwrap_or(u8::MAX))
}
