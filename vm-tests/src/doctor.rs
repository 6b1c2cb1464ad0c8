//! What `tbv-trace doctor` says.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command;
use crate::command::LIMIT;

/// Its checks and its exit status.
pub struct Doctor {
    /// The exit status.
    pub code: i32,
    checks: Vec<Value>,
}

impl Doctor {
    /// Asks the doctor that `tracer` starts; every check has to be complete.
    pub fn ask(tracer: &[&str]) -> Result<Self> {
        let output = command::run(&[tracer, &["doctor", "-f", "json"]].concat(), LIMIT)?;
        ensure!(output.stderr.is_empty(), "{output:?}");
        let checks: Vec<Value> = serde_json::from_str(&output.stdout).context(output.stdout.clone())?;
        for check in &checks {
            let fine = check["status"] == "ok";
            let known = fine || check["status"] == "degraded" || check["status"] == "missing";
            ensure!(known && check["found"].as_str().is_some_and(|found| !found.is_empty()), "{check}");
            ensure!(check["fix"].as_str().is_some_and(|fix| !fix.is_empty()) != fine, "{check}");
        }
        let missing = checks.iter().any(|check| check["status"] == "missing");
        ensure!(output.code() == if missing { 3 } else { 0 }, "exit {}: {checks:?}", output.code());
        Ok(Doctor { code: output.code(), checks })
    }

    /// Fails unless the check of this name has this status, and tells of each of `words` in what it found and what
    /// to do.
    pub fn says(&self, name: &str, status: &str, words: &[&str]) -> Result<()> {
        let check = self.checks.iter().find(|check| check["name"] == name);
        let check = check.with_context(|| format!("no check {name}: {:?}", self.checks))?;
        let text = check.to_string();
        ensure!(check["status"] == status, "not {status}: {text}");
        for word in words {
            ensure!(text.contains(word), "no {word:?} in {text}");
        }
        Ok(())
    }
}
