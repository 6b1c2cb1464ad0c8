//! Budgets: what work a workload has to do, and how often it may call into the kernel for it.
//! docs/budget.md describes them.

mod expression;
mod verdict;

use std::{collections::BTreeMap, fs, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use expression::Expression;
pub use verdict::{Check, Outcome, Proof, Queues, Verdict, Worker};

use crate::{
    error::{Error, Result},
    uapi,
};

/// The version of budgets that this code reads.
pub const BUDGET_VERSION: u32 = 1;
/// Stands for all operations.
pub const ALL: &str = "*";

/// What a workload has to do, and what it may cost. Written in TOML.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Version of this form: 1.
    pub budget_version: u32,
    /// Names the workload in results.
    pub name: String,
    /// The proof of work: nothing is judged without it. Some of it may be given on the command line.
    #[serde(default)]
    pub work: Work,
    /// The path that has to have been taken; a part of the proof.
    #[serde(default, rename = "environment")]
    pub path: PathTaken,
    /// What is judged; at least one.
    #[serde(default, rename = "limit")]
    pub limits: Vec<Limit>,
    /// Where it was read from, for errors.
    #[serde(skip)]
    file: String,
}

/// The work of N iterations. Everything named has to be met exactly.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Whose work and whose calls are looked at.
    #[serde(default)]
    pub scope: Scope,
    /// How many processes have to have done work; one or more if absent.
    pub processes: Option<u64>,
    /// Work requests posted to send queues.
    pub post_send: Option<Posted>,
    /// Work requests posted to receive queues.
    pub post_recv: Option<Expression>,
    /// Completions put into completion queues: signalled sends, receives, and whatever failed.
    pub completions: Option<Expression>,
    /// How many of the completions report an error; 0 if absent.
    pub failed_completions: Option<Expression>,
    /// Calls that succeeded, by operation: for drivers whose work requests cannot be seen.
    #[serde(default)]
    pub calls: BTreeMap<String, Expression>,
}

/// Whose counts are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Each process that did work, by itself.
    #[default]
    Process,
    /// The sum over all processes.
    Total,
}

/// Work requests: how many, or how many of each opcode and none of any other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a count such as \"N\", \"2N+1\" or \"0\", or such counts by opcode")]
pub enum Posted {
    /// Of any opcode.
    Any(Expression),
    /// By opcode, as in the uapi without prefix: `SEND`, `SEND_WITH_IMM`, …
    ByOpcode(BTreeMap<String, Expression>),
}

/// The path that has to have been taken.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathTaken {
    /// How every completion queue was polled.
    pub cq: Option<CqPath>,
    /// How the calls came in.
    pub mode: Option<Mode>,
}

/// How a completion queue is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CqPath {
    /// In memory that was published to user space.
    Mapped,
    /// By system calls.
    Ioctl,
}

/// `environment.mode` of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// All by ioctl(2).
    Ioctl,
    /// All by write(2).
    Write,
    /// By both.
    Mixed,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Ioctl => "ioctl",
            Mode::Write => "write",
            Mode::Mixed => "mixed",
        }
    }
}

/// How many calls of an operation there may be.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "LimitTable")]
pub struct Limit {
    /// The operation, named as in reports; `*` for all calls together.
    pub op: String,
    /// What they are counted by.
    pub per: Per,
    /// The limit.
    pub bound: Bound,
}

/// What calls are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Calls for each of the N iterations.
    Iteration,
    /// Calls for each completion that the work declares.
    Completion,
    /// Calls of the whole run.
    Run,
}

impl Per {
    /// As it is written in a budget.
    pub fn name(self) -> &'static str {
        match self {
            Per::Iteration => "iteration",
            Per::Completion => "completion",
            Per::Run => "run",
        }
    }
}

/// A limit's number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Exactly so many.
    Equal(f64),
    /// So many or fewer.
    AtMost(f64),
    /// So many or more.
    AtLeast(f64),
}

impl Bound {
    fn holds(self, measured: f64) -> bool {
        match self {
            Bound::Equal(limit) => measured == limit,
            Bound::AtMost(limit) => measured <= limit,
            Bound::AtLeast(limit) => measured >= limit,
        }
    }
}

/// A limit as it is written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LimitTable {
    /// The operation, named as in reports; `*` for all calls together.
    op: String,
    /// What its calls are counted by.
    per: Per,
    /// Exactly so many. One of `equal`, `at_most` and `at_least` has to be given.
    equal: Option<f64>,
    /// So many or fewer.
    at_most: Option<f64>,
    /// So many or more; above 0.
    at_least: Option<f64>,
}

impl TryFrom<LimitTable> for Limit {
    type Error = String;

    fn try_from(table: LimitTable) -> Result<Self, String> {
        let bound = match (table.equal, table.at_most, table.at_least) {
            (Some(limit), None, None) => Bound::Equal(limit),
            (None, Some(limit), None) => Bound::AtMost(limit),
            (None, None, Some(limit)) => Bound::AtLeast(limit),
            _ => return Err("a limit has exactly one of equal, at_most and at_least".to_owned()),
        };
        let (Bound::Equal(limit) | Bound::AtMost(limit) | Bound::AtLeast(limit)) = bound;
        if !limit.is_finite() || limit.is_sign_negative() {
            return Err(format!("{limit} is no number of calls"));
        }
        if bound == Bound::AtLeast(0.0) {
            return Err("at_least = 0 always holds".to_owned());
        }
        if table.op != ALL {
            known_op(&table.op)?;
        }
        Ok(Limit { op: table.op, per: table.per, bound })
    }
}

/// A misspelt operation is called 0 times and would be within every limit.
fn known_op(op: &str) -> Result<(), String> {
    if uapi::is_op_name(op) {
        return Ok(());
    }
    Err(format!("there is no operation `{op}`; reports show the names, such as POLL_CQ"))
}

impl Budget {
    /// Reads a budget file, and says what is wrong with one that can't be used.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.display().to_string();
        let read = fs::read_to_string(path).map_err(|e| e.to_string());
        match read.and_then(|text| Self::parse(&text)) {
            Ok(budget) => Ok(Budget { file, ..budget }),
            Err(reason) => Err(Error::Budget { path: file, reason }),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            budget_version: u32,
        }
        let error = |e: toml::de::Error| match e.span().and_then(|span| text.get(..span.start)) {
            Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, e.message()),
            None => e.message().to_owned(),
        };
        let version: Version = toml::from_str(text).map_err(error)?;
        if version.budget_version != BUDGET_VERSION {
            return Err(format!(
                "budget version {} is not the one this tbv-trace reads ({BUDGET_VERSION})",
                version.budget_version
            ));
        }
        let budget: Budget = toml::from_str(text).map_err(error)?;
        if budget.limits.is_empty() {
            return Err("it has no [[limit]]: a gate that checks nothing cannot pass".to_owned());
        }
        budget.work.calls.keys().try_for_each(|op| known_op(op))?;
        Ok(budget)
    }

    /// Adds to the work, or overrides it, by words such as `post_send=N` or `post_send.SEND=2N`.
    pub fn expect(&mut self, what: &str) -> Result<(), String> {
        let (key, count) = what.split_once('=').ok_or_else(|| format!("`{what}` is not KEY=COUNT"))?;
        let count: Expression = count.parse()?;
        let work = &mut self.work;
        match key.split_once('.') {
            None if key == "post_send" => work.post_send = Some(Posted::Any(count)),
            None if key == "post_recv" => work.post_recv = Some(count),
            None if key == "completions" => work.completions = Some(count),
            None if key == "failed_completions" => work.failed_completions = Some(count),
            Some(("post_send", opcode)) => {
                if let Some(Posted::ByOpcode(counts)) = &mut work.post_send {
                    counts.insert(opcode.to_owned(), count);
                } else {
                    work.post_send = Some(Posted::ByOpcode([(opcode.to_owned(), count)].into()));
                }
            }
            Some(("calls", op)) => {
                known_op(op)?;
                work.calls.insert(op.to_owned(), count);
            }
            _ => {
                return Err(format!(
                    "`{key}` is none of post_send, post_send.OPCODE, post_recv, completions, \
                     failed_completions and calls.OPERATION"
                ));
            }
        }
        Ok(())
    }

    /// The JSON schema of this form.
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Budget)
    }
}

#[cfg(test)]
mod tests;
