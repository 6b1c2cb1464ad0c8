//! A verdict as tables for people.

use tbv_core::budget::{Outcome, Verdict, Worker};

use super::{bound, rate, summary};
use crate::text::{columns, command, losses, printable};

/// Columns of what was demanded before judging; numbers from the fifth on.
pub(super) const PROOFS: [&str; 6] = ["", "PID", "COMM", "PROOF OF WORK", "EXPECTED", "FOUND"];
/// Columns of what was judged; numbers from the sixth on.
pub(super) const CHECKS: [&str; 8] = ["", "PID", "COMM", "OPERATION", "PER", "CALLS", "MEASURED", "LIMIT"];

/// The whole text, ending in a newline.
pub(crate) fn render(verdict: &Verdict) -> String {
    let mut out: String =
        facts(verdict).iter().map(|(name, fact)| format!("{name:<8} {}\n", printable(fact))).collect();
    out += &format!("\n{}", columns(PROOFS.to_vec(), proofs(verdict), 4));
    if !verdict.checks.is_empty() {
        out += &format!("\n{}", columns(CHECKS.to_vec(), checks(verdict), 5));
    }
    out + &format!("\n{}\nresult   {}\n", losses(&verdict.loss), result(verdict))
}

pub(super) fn proofs(verdict: &Verdict) -> impl Iterator<Item = Vec<String>> {
    verdict.proofs.iter().map(|proof| {
        let [pid, comm] = who(proof.process.as_ref());
        let result = if proof.holds { "ok" } else { "NOT MET" };
        vec![result.into(), pid, comm, proof.what.clone(), proof.expected.clone(), proof.found.clone()]
    })
}

pub(super) fn checks(verdict: &Verdict) -> impl Iterator<Item = Vec<String>> {
    verdict.checks.iter().map(|check| {
        let [pid, comm] = who(check.process.as_ref());
        let result = if check.holds { "ok" } else { "BREACH" };
        let (calls, per) = (check.calls.to_string(), check.per.name().to_owned());
        vec![result.into(), pid, comm, check.op.clone(), per, calls, rate(check), bound(check.bound)]
    })
}

/// The outcome, ended by what led to it.
pub(super) fn result(verdict: &Verdict) -> String {
    let word = match verdict.outcome {
        Outcome::Passed => "passed",
        Outcome::Exceeded => "EXCEEDED",
        Outcome::Unproven => "CANNOT JUDGE",
        Outcome::Lost => "LOST",
    };
    format!("{word}: {}", summary(verdict))
}

fn who(process: Option<&Worker>) -> [String; 2] {
    process.map_or_else(Default::default, |worker| [worker.pid.to_string(), worker.comm.clone()])
}

/// What was judged, and where it was measured.
pub(super) fn facts(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let e = &verdict.environment;
    let queues = verdict.completion_queues;
    let modules: Vec<String> = e
        .modules
        .iter()
        .map(|module| match &module.srcversion {
            Some(version) => format!("{} {version}", module.name),
            None => module.name.clone(),
        })
        .collect();
    let cpus = if e.cpus == 1 { "CPU" } else { "CPUs" };
    let mut facts = vec![("budget", format!("{}, N = {}", verdict.budget, verdict.iterations))];
    if !verdict.command.is_empty() {
        facts.push(("command", command(&verdict.command)));
    }
    if !verdict.filters.is_empty() {
        facts.push(("only", verdict.filters.join(" ")));
    }
    facts.push(("where", format!("kernel {}, {}, {} {cpus} ({})", e.kernel, e.machine, e.cpus, e.cpu)));
    facts.push(("modules", modules.join(", ")));
    let queues = format!("{} mapped, {} by ioctl", queues.mapped, queues.ioctl);
    facts.push(("path", format!("hook {}, calls by {}, completion queues: {queues}", e.hook, e.mode)));
    facts
}
