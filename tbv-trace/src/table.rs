//! A report as comma-separated values.

use anyhow::Result;
use tbv_core::{Report, fields};

/// Columns that say what a row is of. `kind` is `call`, or `loss` for a row whose `op` names a way to lose calls and
/// whose `count` says how many were.
const HEAD: [&str; 4] = ["kind", "interval", "start_ns", "end_ns"];
/// The fields of a call that follow.
const FIELDS: [&str; 16] = [
    "pid", "ns_pid", "comm", "cgroup", "device", "entry", "op", "count", "errors", "errnos", "min_ns",
    "mean_ns", "max_ns", "p50_ns", "p99_ns", "p99_9_ns",
];

/// The rows of one report, under the names of the columns if it is the first.
pub(crate) fn render(report: &Report, first: bool) -> Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    if first {
        csv.write_record(HEAD.iter().chain(&FIELDS))?;
    }
    let when = when(report);
    for call in &report.calls {
        let field = |name: &&str| {
            let field = fields::named(fields::call::FIELDS, name);
            field.map_or_else(String::new, |field| (field.read)(call, 0.0).plain())
        };
        csv.write_record(
            ["call".to_owned()].into_iter().chain(when.clone()).chain(FIELDS.iter().map(field)),
        )?;
    }
    for (name, count) in report.loss.parts() {
        let field = |field: &&str| match *field {
            "op" => name.to_owned(),
            "count" => count.to_string(),
            _ => String::new(),
        };
        csv.write_record(
            ["loss".to_owned()].into_iter().chain(when.clone()).chain(FIELDS.iter().map(field)),
        )?;
    }
    csv.into_inner().map_err(|error| anyhow::anyhow!("writing CSV: {error}"))
}

/// Number of the interval (`total` for the whole time), its begin and end.
pub(crate) fn when(report: &Report) -> [String; 3] {
    match &report.interval {
        Some(part) => [part.number.to_string(), part.start_ns.to_string(), part.end_ns.to_string()],
        None => ["total".to_owned(), "0".to_owned(), report.duration_ns.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_a_field_of_the_model() {
        assert!(FIELDS.iter().all(|name| fields::named(fields::call::FIELDS, name).is_some()));
    }
}
