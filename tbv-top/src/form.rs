//! What is printed without a screen: text, JSON, JSON lines or CSV, all from the field model.

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value as Json, json};
use tbv_core::{
    display::printable,
    fields::{Column, Field, call, completion_queue, device, process, queue_pair},
};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    app::{shown::Shown, table::TableState},
    cli::{Format, Table},
};

/// How it is printed.
pub(crate) struct Form {
    format: Format,
    table: Table,
    /// Of the chosen table.
    state: TableState,
    first: bool,
    several: bool,
}

/// One cell of every column that is shown.
type Cells = Vec<(&'static Column, Vec<tbv_core::fields::Value<'static>>)>;

impl Form {
    /// In this format, rows of this table; text and CSV have no others. `several` intervals make an array of JSON.
    pub(crate) fn new(
        format: Format,
        table: Table,
        columns: &[String],
        sort: Option<&str>,
        filter: &str,
        several: bool,
    ) -> Result<Self> {
        let state = match table {
            Table::Processes => TableState::new(process::FIELDS, "calls_per_second", true),
            Table::Operations => TableState::new(call::FIELDS, "pid", false),
            Table::QueuePairs => TableState::new(queue_pair::FIELDS, "qpn", false),
            Table::CompletionQueues => TableState::new(completion_queue::FIELDS, "cqn", false),
            Table::Devices => TableState::new(device::FIELDS, "device", false),
        };
        let mut form = Form { format, table, state, first: true, several };
        form.state.filter = filter.to_owned();
        apply(&mut form.state, columns, sort)?;
        // Without their process, operations and queue pairs say nothing.
        if columns.is_empty() && matches!(table, Table::Operations | Table::QueuePairs) {
            let mut names: Vec<&'static str> = vec!["pid", "comm"];
            names.extend(form.state.columns().iter().filter(|column| column.usual).map(|column| column.name));
            form.state.choose(&names);
        }
        Ok(form)
    }

    /// The next interval, or all of the time.
    pub(crate) fn render(&mut self, shown: &Shown) -> Result<String> {
        let first = std::mem::take(&mut self.first);
        match self.format {
            Format::Text => Ok(self.text(shown, first)),
            Format::Json => {
                let before = if first { "[\n" } else { ",\n" };
                let text = serde_json::to_string_pretty(&document(shown)?)?;
                Ok(if self.several { before.to_owned() + &text } else { text + "\n" })
            }
            Format::Jsonl => Ok(serde_json::to_string(&document(shown)?)? + "\n"),
            Format::Csv => self.csv(shown, first),
        }
    }

    /// What follows the last one.
    pub(crate) fn end(&self) -> &'static str {
        match (self.format, self.several, self.first) {
            (Format::Json, true, true) => "[]\n",
            (Format::Json, true, false) => "\n]\n",
            _ => "",
        }
    }

    /// The chosen rows: of text those columns that are shown, of CSV all unless some were chosen.
    fn cells(&self, shown: &Shown) -> Cells {
        let (state, seconds) = (&self.state, shown.seconds);
        match self.table {
            Table::Processes => cells(process::FIELDS, &shown.processes, state, seconds),
            Table::Operations => cells(call::FIELDS, &shown.report.calls, state, seconds),
            Table::QueuePairs => cells(queue_pair::FIELDS, &shown.report.queue_pairs, state, seconds),
            Table::CompletionQueues => cells(completion_queue::FIELDS, &shown.queues, state, seconds),
            Table::Devices => cells(device::FIELDS, &shown.devices, state, seconds),
        }
    }

    fn text(&self, shown: &Shown, first: bool) -> String {
        let report = &shown.report;
        let mut out = if first { String::new() } else { "\n".to_owned() };
        out.push_str(&match &report.interval {
            Some(part) => {
                format!(
                    "interval {}  {:.3} s to {:.3} s\n",
                    part.number,
                    part.start_ns as f64 / 1e9,
                    part.end_ns as f64 / 1e9
                )
            }
            None => format!(
                "all      {:.3} s, kernel {}, hook {}\n",
                shown.seconds,
                printable(&report.environment.kernel),
                printable(&report.environment.hook)
            ),
        });
        let columns: Vec<(bool, Vec<String>)> = self
            .cells(shown)
            .into_iter()
            .map(|(column, values)| {
                let values = values.iter().map(|value| value.shown(column.unit));
                (column.unit.is_number(), std::iter::once(column.title.to_owned()).chain(values).collect())
            })
            .collect();
        let lines = columns.first().map_or(0, |(_, cells)| cells.len());
        for line in 0..lines {
            let mut text = String::new();
            for (number, cells) in &columns {
                let wide = cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
                let cell = cells.get(line).map_or("", String::as_str);
                let blank = " ".repeat(wide.saturating_sub(cell.width()));
                text.push_str(&if *number { blank + cell } else { cell.to_owned() + &blank });
                text.push_str("  ");
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        let (calls, errors) = report.totals();
        out.push_str(&format!("total    {calls} calls, {errors} errors\n"));
        if report.ran_at_begin > 0 {
            out.push_str(&format!(
                "note     calls that ran when tracing began, and are not counted: {}\n",
                report.ran_at_begin
            ));
        }
        let parts = report.loss.parts();
        let lost: Vec<String> =
            parts.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
        out.push_str(&match report.loss.total {
            0 => "loss     none: the counts are exact\n".to_owned(),
            n => format!("LOSS     {n}: {}\n", lost.join(", ")),
        });
        out
    }

    fn csv(&self, shown: &Shown, first: bool) -> Result<String> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        let columns = self.cells(shown);
        if first {
            let names = columns.iter().map(|(column, _)| column.name);
            csv.write_record(["interval", "start_ns", "end_ns", "loss_total"].into_iter().chain(names))?;
        }
        let report = &shown.report;
        let when = match &report.interval {
            Some(part) => [part.number.to_string(), part.start_ns.to_string(), part.end_ns.to_string()],
            None => ["total".to_owned(), "0".to_owned(), report.duration_ns.to_string()],
        };
        let lines = columns.first().map_or(0, |(_, values)| values.len());
        for line in 0..lines {
            let cells = columns
                .iter()
                .map(|(_, values)| values.get(line).map_or_else(String::new, |value| value.plain()));
            csv.write_record(when.iter().cloned().chain([report.loss.total.to_string()]).chain(cells))?;
        }
        if lines == 0 && report.loss.total > 0 {
            // Nothing but what was lost.
            let cells = columns.iter().map(|_| String::new());
            csv.write_record(when.iter().cloned().chain([report.loss.total.to_string()]).chain(cells))?;
        }
        let bytes = csv.into_inner().map_err(|error| anyhow::anyhow!("writing CSV: {error}"))?;
        String::from_utf8(bytes).context("writing CSV")
    }
}

/// Sorts a table by a column and shows these only, if they are named.
pub(crate) fn apply(state: &mut TableState, columns: &[String], sort: Option<&str>) -> Result<()> {
    let find = |state: &TableState, name: &str| -> Result<&'static Column> {
        let found = state.columns().iter().copied().find(|column| column.name == name);
        if let Some(column) = found {
            return Ok(column);
        }
        let names: Vec<&str> = state.columns().iter().map(|column| column.name).collect();
        bail!("this table has no column {name}; it has {}", names.join(", "))
    };
    if let Some(name) = sort {
        let column = find(state, name)?;
        state.sort_by(column);
    }
    if !columns.is_empty() {
        let names = columns.iter().map(|name| Ok(find(state, name)?.name)).collect::<Result<Vec<_>>>()?;
        state.choose(&names);
    }
    Ok(())
}

fn cells<R>(fields: &'static [Field<R>], rows: &[R], state: &TableState, seconds: f64) -> Cells {
    use tbv_core::fields::Value;
    let owned = |value: Value<'_>| match value {
        Value::Text(text) => Value::Text(text.into_owned().into()),
        Value::Absent => Value::Absent,
        Value::Number(n) => Value::Number(n),
        Value::Real(n) => Value::Real(n),
        Value::Flag(flag) => Value::Flag(flag),
    };
    let order = state.order(fields, rows, seconds);
    let shown = fields.iter().filter(|field| state.shows(&field.column));
    shown
        .map(|field| {
            let values =
                order.iter().filter_map(|at| rows.get(*at)).map(|row| owned((field.read)(row, seconds)));
            (&field.column, values.collect())
        })
        .collect()
}

fn array<R>(fields: &'static [Field<R>], rows: &[R], seconds: f64) -> Json {
    let row = |row: &R| {
        let of = |field: &Field<R>| (field.column.name.to_owned(), (field.read)(row, seconds).json());
        Json::Object(fields.iter().map(of).collect::<Map<_, _>>())
    };
    Json::Array(rows.iter().map(row).collect())
}

/// All tables of one time, with every field.
fn document(shown: &Shown) -> Result<Json> {
    let (report, seconds) = (&shown.report, shown.seconds);
    Ok(json!({
        "schema_version": report.schema_version,
        "interval": report.interval.map(serde_json::to_value).transpose()?,
        "duration_ns": report.duration_ns,
        "environment": serde_json::to_value(&report.environment)?,
        "filters": report.filters,
        "processes": array(process::FIELDS, &shown.processes, seconds),
        "operations": array(call::FIELDS, &report.calls, seconds),
        "queue_pairs": array(queue_pair::FIELDS, &report.queue_pairs, seconds),
        "completion_queues": array(completion_queue::FIELDS, &shown.queues, seconds),
        "devices": array(device::FIELDS, &shown.devices, seconds),
        "cost": shown.cost.map(|(share, run_ns)| json!({"cpu_share": share, "run_ns": run_ns})),
        "loss": serde_json::to_value(&report.loss)?,
        "ran_at_begin": report.ran_at_begin,
    }))
}

/// A list of all fields, for people.
pub(crate) fn fields() -> String {
    let mut out = String::new();
    list("processes", process::FIELDS, &mut out);
    list("operations", call::FIELDS, &mut out);
    list("queue-pairs", queue_pair::FIELDS, &mut out);
    list("completion-queues", completion_queue::FIELDS, &mut out);
    list("devices", device::FIELDS, &mut out);
    out
}

fn list<R>(table: &str, fields: &'static [Field<R>], out: &mut String) {
    out.push_str(&format!("{table}\n"));
    for Field { column, .. } in fields {
        out.push_str(&format!("  {:<24} {:<8} {}\n", column.name, column.unit.name(), column.description));
    }
}
