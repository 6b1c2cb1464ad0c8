//! Turns how a guest ended and what its kernel said into an exit code and messages.

use std::{fs, io, path::Path};

use anyhow::{Context, Result};

use super::{guest::Outcome, log};

/// The kernel log tells of a broken kernel.
const EXIT_KERNEL: u8 = 70;
/// The time was up.
const EXIT_TIMEOUT: u8 = 124;
/// The runner itself failed; the command did not run, or how it ended is unknown.
pub(crate) const EXIT_RUNNER: u8 = 125;

/// Prints what there is to say; returns the exit code. `limit` is the time that was given, in seconds.
pub(super) fn judge(outcome: Outcome, log: &Path, limit: u64) -> Result<u8> {
    let text = match fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        // QEMU gave up before it made the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read the kernel log {}", log.display()));
        }
    };
    let (code, messages) = verdict(outcome, &text, log, limit);
    for message in messages {
        eprintln!("xtask: {message}");
    }
    Ok(code)
}

/// The exit code and what there is to say. The log is empty if the machine did not start; QEMU has said why.
fn verdict(outcome: Outcome, log: &str, place: &Path, limit: u64) -> (u8, Vec<String>) {
    let findings = log::scan(log);
    let excused = findings.excused.iter().map(|(line, reason)| format!("excused: {line} ({reason})"));
    let mut messages: Vec<String> = excused.collect();
    let place = place.display();
    let code = match outcome {
        Outcome::Exited(status) => status,
        Outcome::TimedOut { booted } => {
            let what = if booted { "the command had not ended" } else { "the guest had not booted" };
            messages
                .push(format!("{what} after {limit} s (--timeout); killed the guest. Kernel log: {place}"));
            EXIT_TIMEOUT
        }
        Outcome::Gone { booted } => {
            let what = if booted { "before the command ended" } else { "before it had booted" };
            messages.push(match ending(log) {
                Some(end) => format!("the guest went away {what}. Kernel log: {place}, which ends:{end}"),
                None => "the guest did not start".to_owned(),
            });
            EXIT_RUNNER
        }
        // As a shell reports SIGPIPE and other signals.
        Outcome::Unread => 128 + 13,
        Outcome::Stopped(signal) => 128 + signal as u8,
    };
    if findings.trouble.is_empty() {
        return (code, messages);
    }
    let lines: String = findings.trouble.iter().map(|line| format!("\n  {line}")).collect();
    let how = ended(outcome);
    messages.push(format!("the guest's kernel is in trouble ({how}). Kernel log: {place}{lines}"));
    (EXIT_KERNEL, messages)
}

/// What became of the command.
fn ended(outcome: Outcome) -> String {
    match outcome {
        // The guest's script says 125 too, if our driver cannot be loaded.
        Outcome::Exited(EXIT_RUNNER) => "the command did not start, or its exit code was 125".to_owned(),
        Outcome::Exited(status) => format!("the command's own exit code: {status}"),
        Outcome::TimedOut { .. } | Outcome::Gone { .. } | Outcome::Unread | Outcome::Stopped(_) => {
            "the command did not end".to_owned()
        }
    }
}

/// The last lines of a log, if there are any.
fn ending(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(10)..];
    (!last.is_empty()).then(|| last.iter().map(|line| format!("\n  {line}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OOPS: &str = "[    9.0] Oops: double fault: 0000 [#1] PREEMPT SMP";

    fn of(outcome: Outcome, log: &str) -> (u8, String) {
        let (code, messages) = verdict(outcome, log, Path::new("/k.log"), 60);
        (code, messages.join("\n"))
    }

    #[test]
    fn the_commands_exit_code_passes_when_all_is_well() {
        assert_eq!(of(Outcome::Exited(7), "[    0.0] Linux"), (7, String::new()));
        assert_eq!(of(Outcome::Unread, ""), (141, String::new()));
        assert_eq!(of(Outcome::Stopped(2), ""), (130, String::new()));
        let (code, said) = of(Outcome::TimedOut { booted: true }, "");
        assert!(code == EXIT_TIMEOUT && said.contains("after 60 s"), "{code} {said}");
    }

    #[test]
    fn a_broken_kernel_is_told_with_what_became_of_the_command() {
        for (outcome, how) in [
            (Outcome::Exited(0), "(the command's own exit code: 0)"),
            (Outcome::Exited(125), "(the command did not start, or its exit code was 125)"),
            (Outcome::Gone { booted: true }, "(the command did not end)"),
            (Outcome::TimedOut { booted: true }, "(the command did not end)"),
            (Outcome::Stopped(2), "(the command did not end)"),
        ] {
            let (code, said) = of(outcome, OOPS);
            assert_eq!(code, EXIT_KERNEL, "{said}");
            assert!(said.contains(how) && said.ends_with(&format!("/k.log\n  {OOPS}")), "{said}");
        }
    }

    #[test]
    fn a_guest_that_went_away_leaves_the_end_of_its_log_if_it_has_one() {
        let log: String = (1..=12).map(|n| format!("[    {n}.0] line\n")).collect();
        let (code, said) = of(Outcome::Gone { booted: false }, &log);
        assert_eq!(code, EXIT_RUNNER);
        assert!(said.contains("before it had booted. Kernel log: /k.log"), "{said}");
        assert!(said.contains("\n  [    3.0] line") && !said.contains("[    2.0]"), "{said}");
        let gone = Outcome::Gone { booted: false };
        assert_eq!(of(gone, ""), (EXIT_RUNNER, "the guest did not start".to_owned()));
    }
}
