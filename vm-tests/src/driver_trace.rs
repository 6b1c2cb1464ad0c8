//! What the driver's tracepoints told, read as text from an instance of tracefs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command::LIMIT;
use crate::command::wait_until;

const INSTANCE: &str = "/sys/kernel/tracing/instances/tbv-tests";

/// One event and its numbers by name; docs/tracepoints.md says what they mean.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub fields: BTreeMap<String, u64>,
}

/// Fields that an event must have, among others.
pub type Fields<'a> = &'a [(&'a str, u64)];

impl Event {
    /// `task-pid [cpu] flags time: name: field=1 other=0x2`; other lines are none.
    fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.trim_end().split_once("] ")?;
        let mut parts = rest.splitn(3, ": ");
        let (name, text) = (parts.nth(1)?, parts.next()?);
        let field = |word: &str| {
            let (name, value) = word.split_once('=')?;
            let value = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => value.parse().ok()?,
            };
            Some((name.to_owned(), value))
        };
        let fields = text.split(' ').map(field).collect::<Option<_>>()?;
        Some(Self { name: name.to_owned(), fields })
    }

    pub fn is(&self, name: &str, fields: Fields) -> bool {
        self.name == name && fields.iter().all(|(name, value)| self.fields.get(*name) == Some(value))
    }

    /// A number; an error if the event has none of that name.
    pub fn get(&self, name: &str) -> Result<u64> {
        self.fields.get(name).copied().with_context(|| format!("{} has no field {name}", self.name))
    }
}

/// A trace that is being taken, from its start on. There is one at a time.
pub struct Trace(());

impl Trace {
    /// Starts an empty one.
    pub fn start() -> Result<Self> {
        if !Path::new(INSTANCE).exists() {
            fs::create_dir(INSTANCE).context(INSTANCE)?;
            write("buffer_size_kb", "4096")?;
        }
        write("events/tbv/enable", "1")?;
        write("trace", "")?;
        Ok(Self(()))
    }

    /// Everything so far, in order.
    pub fn events(&self) -> Result<Vec<Event>> {
        let path = format!("{INSTANCE}/trace");
        let text = fs::read_to_string(&path).context(path)?;
        ensure!(!text.contains("LOST"), "the trace lost events");
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| Event::parse(line).with_context(|| format!("not an event: {line}"))).collect()
    }

    /// Those that are like this.
    pub fn find(&self, name: &str, fields: Fields) -> Result<Vec<Event>> {
        Ok(self.events()?.into_iter().filter(|event| event.is(name, fields)).collect())
    }

    /// How many are like this so far.
    pub fn count(&self, name: &str, fields: Fields) -> Result<usize> {
        Ok(self.find(name, fields)?.len())
    }

    /// The first that is like this; waits for it.
    pub fn wait(&self, name: &str, fields: Fields) -> Result<Event> {
        let mut found = None;
        wait_until(&format!("event {name} {fields:?}"), LIMIT, || {
            found = self.find(name, fields)?.into_iter().next();
            Ok(found.is_some())
        })?;
        found.context("no event")
    }

    /// There is none like this so far.
    pub fn none(&self, name: &str, fields: Fields) -> Result<()> {
        let found = self.find(name, fields)?;
        ensure!(found.is_empty(), "should not be: {found:?}");
        Ok(())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // The next one starts empty whatever becomes of this.
        let _ = write("events/tbv/enable", "0");
    }
}

fn write(file: &str, text: &str) -> Result<()> {
    let path = format!("{INSTANCE}/{file}");
    fs::write(&path, text).context(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_other_lines_are_not() {
        let line = "   qp_arrows: a-12  [001] D.s2.  12.345678: qp_state: dev=1 qpn=0x2a to=6";
        let event = Event::parse(line).unwrap();
        assert!(event.is("qp_state", &[("dev", 1), ("qpn", 42), ("to", 6)]));
        assert!(!event.is("qp_state", &[("dev", 0)]) && !event.is("qp_state", &[("from", 0)]));
        assert!(!event.is("ack", &[]));
        assert_eq!(event.get("qpn").unwrap(), 42);
        assert!(event.get("from").is_err());
        for line in ["# tracer: nop", "a-1 [000] d 1.0: ack: words", "a-1 [000] d 1.0: ack"] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }
}
