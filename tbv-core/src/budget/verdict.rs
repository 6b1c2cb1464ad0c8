//! What a budget says of a report.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{ALL, Bound, Budget, CqPath, Expression, Limit, Per, Posted, Scope};
use crate::{
    environment::Environment,
    error::{Error, Result},
    loss::Losses,
    report::{Call, Completions, Report},
};

/// The result of judging a report.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Name of the budget.
    pub budget: String,
    /// N.
    pub iterations: u64,
    /// What came out.
    pub outcome: Outcome,
    /// Where the report was made.
    pub environment: Environment,
    /// The command that was run.
    pub command: Vec<String>,
    /// What the report leaves out.
    pub filters: Vec<String>,
    /// The report's completion queues, by their path.
    pub completion_queues: Queues,
    /// What was demanded before anything was judged.
    pub proofs: Vec<Proof>,
    /// What was judged; empty if the outcome is neither passed nor exceeded.
    pub checks: Vec<Check>,
    /// What the report lost.
    pub loss: Losses,
}

/// What comes of judging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work was done, within every limit.
    Passed,
    /// The work was done, beyond a limit.
    Exceeded,
    /// The work was not proven, so that the counts say nothing.
    Unproven,
    /// Counts are not exact, and were to be.
    Lost,
}

/// How many completion queues were polled how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queues {
    /// Published to user space.
    pub mapped: usize,
    /// By system calls.
    pub ioctl: usize,
}

/// A process that did work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Process id, in the initial pid namespace.
    pub pid: u32,
    /// Name of the process; that which made the most calls, if `exec` gave it another.
    pub comm: String,
}

/// Something demanded before judging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Whose; absent for the report as a whole.
    pub process: Option<Worker>,
    /// What.
    pub what: String,
    /// What it has to be.
    pub expected: String,
    /// What it is.
    pub found: String,
    /// Whether it is so.
    pub holds: bool,
}

/// One limit on one process, or on the sum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Whose calls; absent for the sum.
    pub process: Option<Worker>,
    /// The operation, `*` for all.
    pub op: String,
    /// What they are counted by.
    pub per: Per,
    /// The limit.
    pub bound: Bound,
    /// Calls, failed ones too.
    pub calls: u64,
    /// Calls per what they are counted by.
    pub measured: f64,
    /// Whether they are within the limit.
    pub holds: bool,
}

impl Budget {
    /// Judges a report of `iterations` iterations; `strict` if its counts have to be exact.
    pub fn judge(&self, report: &Report, iterations: u64, strict: bool) -> Result<Verdict> {
        let demands = Demands::at(self, iterations)
            .map_err(|reason| Error::Budget { path: self.file.clone(), reason })?;
        let queues = queues(&report.completions);
        let parts = parts(self, report);
        let mut proofs = whole(self, report, queues);
        if self.work.processes.is_some() || self.work.scope == Scope::Process {
            proofs.push(processes(self.work.processes, workers(self, report).len() as u64));
        }
        proofs.extend(parts.iter().flat_map(|part| demands.proofs(part)));
        let mut checks: Vec<Check> = Vec::new();
        let outcome = if strict && report.loss.total > 0 {
            Outcome::Lost
        } else if proofs.iter().any(|proof| !proof.holds) {
            Outcome::Unproven
        } else {
            for part in &parts {
                checks.extend(self.limits.iter().map(|limit| demands.check(limit, part)));
            }
            let within = checks.iter().all(|check| check.holds);
            if within { Outcome::Passed } else { Outcome::Exceeded }
        };
        Ok(Verdict {
            budget: self.name.clone(),
            iterations,
            outcome,
            environment: report.environment.clone(),
            command: report.command.clone(),
            filters: report.filters.clone(),
            completion_queues: queues,
            proofs,
            checks,
            loss: report.loss.clone(),
        })
    }
}

fn queues(completions: &[Completions]) -> Queues {
    let mapped = completions.iter().filter(|cq| cq.mapped).count();
    Queues { mapped, ioctl: completions.len() - mapped }
}

/// Whether the report is one of a whole run that succeeded on the right path.
fn whole(budget: &Budget, report: &Report, queues: Queues) -> Vec<Proof> {
    let proof = |what: &str, expected: &str, found: String, holds: bool| Proof {
        process: None,
        what: what.to_owned(),
        expected: expected.to_owned(),
        found,
        holds,
    };
    let status = report.exit_status.map_or_else(|| "none".to_owned(), |status| status.to_string());
    let mut proofs = vec![proof("exit status", "0", status, report.exit_status == Some(0))];
    if let Some(interval) = report.interval {
        proofs.push(proof("time", "whole run", format!("interval {}", interval.number), false));
    }
    let shortens = |filter: &&String| filter.starts_with("--failed") || filter.starts_with("--top");
    let shortened: Vec<&str> = report.filters.iter().filter(shortens).map(String::as_str).collect();
    if !shortened.is_empty() {
        proofs.push(proof("rows", "all", shortened.join(" "), false));
    }
    let shown = sum(report.calls.iter().map(|call| call.count));
    if report.totals().0 != shown {
        proofs.push(proof("calls in rows", &report.totals().0.to_string(), shown.to_string(), false));
    }
    if let Some(mode) = budget.path.mode {
        let found = &report.environment.mode;
        proofs.push(proof("mode", mode.name(), found.clone(), found == mode.name()));
    }
    if let Some(path) = budget.path.cq {
        let (name, wrong) = match path {
            CqPath::Mapped => ("mapped", queues.ioctl),
            CqPath::Ioctl => ("ioctl", queues.mapped),
        };
        let found = match queues {
            Queues { mapped: 0, ioctl: 0 } => "no queues".to_owned(),
            Queues { mapped, ioctl: 0 } => format!("{mapped} mapped"),
            Queues { mapped: 0, ioctl } => format!("{ioctl} ioctl"),
            Queues { mapped, ioctl } => format!("{mapped} mapped, {ioctl} ioctl"),
        };
        let all = wrong == 0 && !report.completions.is_empty();
        proofs.push(proof("completion queues", name, found, all));
    }
    proofs
}

fn processes(declared: Option<u64>, found: u64) -> Proof {
    Proof {
        process: None,
        what: "processes that did work".to_owned(),
        expected: declared.map_or_else(|| "1 or more".to_owned(), |n| n.to_string()),
        found: found.to_string(),
        holds: declared.map_or(found > 0, |n| found == n),
    }
}

/// What is looked at by itself: a process that did work, or everything.
struct Part<'a> {
    report: &'a Report,
    process: Option<Worker>,
}

fn parts<'a>(budget: &Budget, report: &'a Report) -> Vec<Part<'a>> {
    if budget.work.scope == Scope::Total {
        return vec![Part { report, process: None }];
    }
    let part = |pid| {
        let own = report.calls.iter().filter(|call| call.pid == pid);
        let comm = own.max_by_key(|call| call.count).map_or_else(String::new, |call| call.comm.clone());
        Part { report, process: Some(Worker { pid, comm }) }
    };
    workers(budget, report).into_iter().map(part).collect()
}

/// Processes that did some of what is work.
fn workers(budget: &Budget, report: &Report) -> BTreeSet<u32> {
    let posted = report.work_requests.iter().filter(|work| work.posted > 0).map(|work| work.pid);
    let completed = report.completions.iter().filter(|cq| cq.produced_meanwhile() > 0).map(|cq| cq.pid);
    let is_work = |call: &&Call| budget.work.calls.contains_key(&call.op) && call.count > call.errors;
    let called = report.calls.iter().filter(is_work).map(|call| call.pid);
    posted.chain(completed).chain(called).collect()
}

impl Part<'_> {
    fn has(&self, pid: u32) -> bool {
        self.process.as_ref().is_none_or(|process| process.pid == pid)
    }

    fn calls(&self, op: &str, read: fn(&Call) -> u64) -> u64 {
        let own = self.report.calls.iter().filter(|call| self.has(call.pid));
        sum(own.filter(|call| op == ALL || call.op == op).map(read))
    }

    fn posted(&self, queue: &str, opcode: Option<&str>) -> u64 {
        let own = self.report.work_requests.iter().filter(|work| self.has(work.pid) && work.queue == queue);
        sum(own.filter(|work| opcode.is_none_or(|opcode| work.opcode == opcode)).map(|work| work.posted))
    }

    fn completions(&self, read: fn(&Completions) -> u64) -> u64 {
        sum(self.report.completions.iter().filter(|cq| self.has(cq.pid)).map(read))
    }
}

/// A report may hold any numbers; one so large is nobody's budget.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A budget's counts for a number of iterations.
struct Demands {
    iterations: u64,
    post_send: Option<u64>,
    by_opcode: Vec<(String, u64)>,
    post_recv: Option<u64>,
    completions: Option<u64>,
    /// Declared, or taken for granted.
    failed: (u64, bool),
    calls: Vec<(String, u64)>,
}

impl Demands {
    fn at(budget: &Budget, iterations: u64) -> Result<Self, String> {
        let work = &budget.work;
        let value = |count: &Expression| {
            count.at(iterations).ok_or_else(|| format!("{count} is no count where N is {iterations}"))
        };
        let named = |(name, count): (&String, &Expression)| Ok((name.clone(), value(count)?));
        let (post_send, by_opcode) = match &work.post_send {
            None => (None, Vec::new()),
            Some(Posted::Any(count)) => (Some(value(count)?), Vec::new()),
            Some(Posted::ByOpcode(counts)) => {
                let counts = counts.iter().map(named).collect::<Result<Vec<_>, String>>()?;
                (Some(sum(counts.iter().map(|(_, n)| *n))), counts)
            }
        };
        let demands = Demands {
            iterations,
            post_send,
            by_opcode,
            post_recv: work.post_recv.as_ref().map(value).transpose()?,
            completions: work.completions.as_ref().map(value).transpose()?,
            failed: match &work.failed_completions {
                Some(count) => (value(count)?, true),
                None => (0, false),
            },
            calls: work.calls.iter().map(named).collect::<Result<Vec<_>, String>>()?,
        };
        if iterations == 0 {
            return Err("0 iterations are no work".to_owned());
        }
        let declared = [demands.post_send, demands.post_recv, demands.completions].into_iter().flatten();
        if sum(declared.chain(demands.calls.iter().map(|(_, n)| *n))) == 0 {
            return Err(
                "no work is declared: name post_send, post_recv, completions or calls in [work] or by --expect"
                    .to_owned(),
            );
        }
        let per_completion = budget.limits.iter().any(|limit| limit.per == Per::Completion);
        if per_completion && demands.completions.unwrap_or(0) == 0 {
            return Err("a limit per completion needs completions in [work] or by --expect".to_owned());
        }
        Ok(demands)
    }

    /// What a part has to have done, beside what it did.
    fn proofs(&self, part: &Part<'_>) -> Vec<Proof> {
        let report = part.report;
        // Other drivers show neither work requests nor completions: then 0 is not what happened.
        let seen = report.environment.driver_trace_abi.is_some()
            || !(report.work_requests.is_empty() && report.completions.is_empty());
        let proof = |what: String, expected: u64, found: Option<u64>| Proof {
            process: part.process.clone(),
            what,
            expected: expected.to_string(),
            found: found.map_or_else(|| "not visible".to_owned(), |n| n.to_string()),
            holds: found == Some(expected),
        };
        let mut proofs = Vec::new();
        let mut add = |what: &str, expected: Option<u64>, found: u64| {
            proofs.extend(expected.map(|n| proof(what.to_owned(), n, seen.then_some(found))));
        };
        for (opcode, expected) in &self.by_opcode {
            add(&format!("post_send.{opcode}"), Some(*expected), part.posted("send", Some(opcode)));
        }
        add("post_send", self.post_send, part.posted("send", None));
        add("post_recv", self.post_recv, part.posted("receive", None));
        add("completions", self.completions, part.completions(Completions::produced_meanwhile));
        let (failed, declared) = self.failed;
        add("failed_completions", (seen || declared).then_some(failed), part.completions(|cq| cq.failed));
        let succeeded = |call: &Call| call.count.saturating_sub(call.errors);
        proofs.extend(
            self.calls.iter().map(|(op, expected)| {
                proof(format!("calls.{op}"), *expected, Some(part.calls(op, succeeded)))
            }),
        );
        proofs
    }

    fn check(&self, limit: &Limit, part: &Part<'_>) -> Check {
        let calls = part.calls(&limit.op, |call| call.count);
        let measured = match limit.per {
            Per::Iteration => calls as f64 / self.iterations as f64,
            // Declared and so, by the proof, counted; not 0.
            Per::Completion => calls as f64 / self.completions.unwrap_or(0) as f64,
            Per::Run => calls as f64,
        };
        Check {
            process: part.process.clone(),
            op: limit.op.clone(),
            per: limit.per,
            bound: limit.bound,
            calls,
            measured,
            holds: limit.bound.holds(measured),
        }
    }
}
