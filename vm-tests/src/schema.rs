//! Whether JSON is what `tbv-trace schema` says.

use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use jsonschema::Validator;
use serde_json::Value;

use crate::command;

/// What there is a schema of.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    /// A report.
    Report,
    /// A line of `events -f jsonl`.
    Events,
}

/// Fails unless `value` is of that form.
pub fn check(schema: Schema, value: &Value) -> Result<()> {
    static REPORT: OnceLock<Result<Validator, String>> = OnceLock::new();
    static EVENTS: OnceLock<Result<Validator, String>> = OnceLock::new();
    let (known, name) = match schema {
        Schema::Report => (&REPORT, "report"),
        Schema::Events => (&EVENTS, "events"),
    };
    match known.get_or_init(|| read(name).map_err(|error| format!("{error:#}"))) {
        Ok(validator) => {
            if let Some(error) = validator.iter_errors(value).next() {
                bail!("not what `tbv-trace schema {name}` says: {error}");
            }
            Ok(())
        }
        Err(error) => bail!("{error}"),
    }
}

fn read(name: &str) -> Result<Validator> {
    let output = command::run(&["tbv-trace", "schema", name], command::LIMIT)?.success()?;
    let schema: Value = serde_json::from_str(&output.stdout)?;
    jsonschema::validator_for(&schema).context("the schema")
}
