//! What works on this machine, what doesn't, and what to do about it.

mod hooks;
mod kernel;
mod memory;
mod rdma;

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::obstacles::Obstacle;

/// What to do where [`crate::tracer::allowed`] says no.
const NOT_ALLOWED: &str = "see capabilities and lockdown";

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, with less.
    Degraded,
    /// Nothing can be measured without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// How it is.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it; absent if it is fine.
    pub fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Check { name, status: Status::Ok, found: found.into(), fix: None }
    }

    fn degraded(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Check { name, status: Status::Degraded, found: found.into(), fix: Some(fix.into()) }
    }

    fn missing(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Check { name, status: Status::Missing, found: found.into(), fix: Some(fix.into()) }
    }

    /// Fine with `found`, or what some hooks cannot work without.
    fn needed_by_some(name: &'static str, found: impl Into<String>, result: Result<(), Obstacle>) -> Self {
        match result {
            Ok(()) => Check::ok(name, found),
            Err(Obstacle { reason, fix }) => Check::degraded(name, reason, fix),
        }
    }
}

/// Looks at everything. Attaches and detaches each hook if that is allowed.
pub fn examine() -> Vec<Check> {
    let root = Path::new("/");
    let mut checks = kernel::checks(root);
    checks.extend(rdma::checks(root));
    checks.extend(hooks::checks(root));
    checks.push(memory::check());
    checks
}

/// The JSON schema of what [`examine`] gives.
pub fn json_schema() -> schemars::Schema {
    schemars::schema_for!(Vec<Check>)
}
