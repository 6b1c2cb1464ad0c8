//! Results of `tbv-trace hist` as JSON, and its samples.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tbv_common::histogram;

use crate::schema::{self, Schema};

/// A report with spans.
pub struct Hist(pub Value);

/// Values by bucket, `[low, high)`.
pub type Buckets = BTreeMap<(u64, u64), u64>;

/// What tells rows of spans apart: span, pid, device, queue pair, queue, opcode.
pub type Key = (String, u64, String, u64, String, String);

impl Hist {
    /// Reads a report file, which must be sound.
    pub fn read(path: &str) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
        Self::parse(&text).with_context(|| path.to_owned())
    }

    /// Reads one report.
    pub fn parse(text: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(text)?;
        schema::check(Schema::Report, &json)?;
        Ok(Hist(json))
    }

    /// Rows of a table.
    pub fn rows(&self, table: &str) -> Result<&Vec<Value>> {
        self.0[table].as_array().with_context(|| format!("no {table}"))
    }

    /// Sum of a field over a table's rows that are like this.
    pub fn sum(&self, table: &str, field: &str, like: &[(&str, &str)]) -> Result<u64> {
        let is_like = |row: &&Value| like.iter().all(|(name, value)| row[*name] == **value);
        self.rows(table)?.iter().filter(is_like).map(|row| number(row, field)).sum()
    }

    /// Values by row of spans.
    pub fn buckets(&self) -> Result<BTreeMap<Key, Buckets>> {
        let mut all = BTreeMap::new();
        for row in self.rows("spans")? {
            let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let key = (
                text("span"),
                number(row, "pid")?,
                text("device"),
                number(row, "qpn")?,
                text("queue"),
                text("opcode"),
            );
            let filled: Vec<(u64, u64, u64)> = serde_json::from_value(row["latency_buckets"].clone())?;
            let buckets: Buckets = filled.into_iter().map(|(low, high, n)| ((low, high), n)).collect();
            ensure!(
                buckets.values().sum::<u64>() == number(row, "count")?,
                "buckets and count differ: {row}"
            );
            ensure!(all.insert(key, buckets).is_none(), "a row is there twice: {row}");
        }
        Ok(all)
    }

    /// The median of a span, over all its rows.
    pub fn median(&self, span: &str, queue: &str) -> Result<u64> {
        let mut merged = Buckets::new();
        for ((name, _, _, _, of, _), buckets) in self.buckets()? {
            if name == span && of == queue {
                for (bucket, n) in buckets {
                    *merged.entry(bucket).or_default() += n;
                }
            }
        }
        let total: u64 = merged.values().sum();
        let mut seen = 0;
        for ((low, high), n) in merged {
            seen += n;
            if 2 * seen >= total && seen > 0 {
                return Ok(low + (high - low) / 2);
            }
        }
        anyhow::bail!("no {span} of {queue}")
    }

    /// What must hold of every queue pair: nothing was paired wrongly, nothing is missing.
    pub fn adds_up(&self) -> Result<()> {
        let mut without = 0;
        for qp in self.rows("queue_pairs")? {
            let of = |field: &str| number(qp, field);
            let ends = of("completed")? + of("overflowed")? + of("forgotten")? + of("open")?;
            without +=
                of("posted")?.checked_sub(ends).with_context(|| format!("{ends} accounted for: {qp}"))?;
            let own = |row: &&Value| {
                row["span"] == "post_to_completion"
                    && (&row["device"], &row["qpn"]) == (&qp["device"], &qp["qpn"])
            };
            let spans = self
                .rows("spans")?
                .iter()
                .filter(own)
                .map(|row| number(row, "count"))
                .sum::<Result<u64>>()?;
            ensure!(spans == of("completed")?, "{spans} spans: {qp}");
        }
        // A request that the kernel had no room to remember is said to be lost.
        let lost = number(&self.0["loss"], "requests_full")?;
        ensure!(without == lost, "{without} not accounted for, {lost} lost");
        Ok(())
    }
}

/// A number of a row.
pub fn number(row: &Value, field: &str) -> Result<u64> {
    row[field].as_u64().with_context(|| format!("no {field} in {row}"))
}

/// The samples of a file, counted as the kernel side counts them; each request once.
pub fn samples(path: &str) -> Result<BTreeMap<Key, Buckets>> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let mut lines = text.lines();
    ensure!(
        lines.next() == Some("time_ns,event,duration_ns,pid,device,qpn,queue,opcode,seq,status"),
        "{path} begins otherwise"
    );
    let mut all: BTreeMap<Key, Buckets> = BTreeMap::new();
    let mut requests = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, event, duration, pid, device, qpn, queue, opcode, seq, _] = fields[..] else {
            anyhow::bail!("not a sample: {line}")
        };
        if ["post_to_completion", "unpaired_completion"].contains(&event) {
            let request = (device.to_owned(), qpn.to_owned(), queue.to_owned(), seq.to_owned());
            ensure!(requests.insert(request, ()).is_none(), "a request ends twice: {line}");
        }
        if event == "unpaired_completion" {
            continue;
        }
        let key = (
            event.to_owned(),
            pid.parse()?,
            device.to_owned(),
            qpn.parse()?,
            queue.to_owned(),
            opcode.to_owned(),
        );
        let bucket = histogram::Bucket::at(histogram::index(duration.parse()?));
        *all.entry(key).or_default().entry((bucket.low, bucket.high)).or_default() += 1;
    }
    Ok(all)
}
