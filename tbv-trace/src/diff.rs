//! `tbv-trace diff`: two reports beside each other.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use serde::Serialize;
use tbv_core::{Report, environment::Environment};

use crate::{
    cli::{DiffArgs, PlainFormat},
    text,
};

/// What two reports have to do with each other.
#[derive(Debug, Serialize)]
pub(crate) struct Difference {
    /// What differs of the environments; times are compared only if nothing does.
    pub(crate) environment: Vec<Differing>,
    /// A row per name of process, device, entry and operation.
    pub(crate) rows: Vec<Row>,
    /// What each report leaves out; rows that one leaves out count as 0 there.
    pub(crate) filters: [Vec<String>; 2],
    /// Calls in all, of rows that are left out too.
    pub(crate) total: [u64; 2],
    /// What was lost in each.
    pub(crate) loss: [u64; 2],
}

/// One thing that is not the same.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Differing {
    pub(crate) what: &'static str,
    pub(crate) values: [String; 2],
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    pub(crate) comm: String,
    pub(crate) device: String,
    pub(crate) entry: String,
    pub(crate) op: String,
    pub(crate) count: [u64; 2],
    pub(crate) errors: [u64; 2],
    /// Mean time of a call in nanoseconds; absent if the environments differ or nothing was timed.
    pub(crate) mean_ns: [Option<u64>; 2],
}

/// `tbv-trace diff`.
pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let difference = Difference::between([&Report::read(&args.a)?, &Report::read(&args.b)?]);
    let mut out = io::stdout().lock();
    match args.format {
        PlainFormat::Text => write!(out, "{}", text::difference(&difference, args.iterations))?,
        PlainFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&difference)?)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

impl Difference {
    pub(crate) fn between(reports: [&Report; 2]) -> Self {
        let environment = differing(reports.map(|report| &report.environment));
        let mut rows: BTreeMap<[&str; 4], Row> = BTreeMap::new();
        let mut times: BTreeMap<[&str; 4], [(u128, u64); 2]> = BTreeMap::new();
        for (side, report) in reports.into_iter().enumerate() {
            for call in &report.calls {
                let key = [&call.comm, &call.device, &call.entry, &call.op].map(String::as_str);
                let row = rows.entry(key).or_insert_with(|| Row {
                    comm: call.comm.clone(),
                    device: call.device.clone(),
                    entry: call.entry.clone(),
                    op: call.op.clone(),
                    ..Row::default()
                });
                row.count[side] += call.count;
                row.errors[side] += call.errors;
                if let Some(latency) = &call.latency_ns {
                    let time = &mut times.entry(key).or_default()[side];
                    time.0 += u128::from(latency.mean) * u128::from(call.count);
                    time.1 += call.count;
                }
            }
        }
        if environment.is_empty() {
            for (key, row) in &mut rows {
                let mean = |(sum, count): (u128, u64)| sum.checked_div(count.into()).map(|mean| mean as u64);
                row.mean_ns = times.get(key).map_or([None; 2], |sides| sides.map(mean));
            }
        }
        Difference {
            environment,
            rows: rows.into_values().collect(),
            filters: reports.map(|report| report.filters.clone()),
            total: reports.map(|report| report.totals().0),
            loss: reports.map(|report| report.loss.total),
        }
    }
}

/// What must be the same before times may be compared.
fn differing(environments: [&Environment; 2]) -> Vec<Differing> {
    type Part = (&'static str, fn(&Environment) -> String);
    let parts: [Part; 9] = [
        ("kernel", |e| e.kernel.clone()),
        ("machine", |e| e.machine.clone()),
        ("cpu", |e| e.cpu.clone()),
        ("cpus", |e| e.cpus.to_string()),
        ("hook", |e| e.hook.clone()),
        ("mode", |e| e.mode.clone()),
        ("probes", |e| if e.probes.is_empty() { "none" } else { "attached" }.to_owned()),
        ("tool", |e| e.tool_version.clone()),
        ("modules", |e| {
            let named = e.modules.iter().map(|m| match &m.srcversion {
                Some(version) => format!("{} {version}", m.name),
                None => m.name.clone(),
            });
            named.collect::<Vec<_>>().join(", ")
        }),
    ];
    parts
        .into_iter()
        .map(|(what, read)| Differing { what, values: environments.map(read) })
        .filter(|part| part.values[0] != part.values[1])
        .collect()
}
