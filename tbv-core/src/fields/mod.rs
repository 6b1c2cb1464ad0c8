//! The field model: every number that is shown in columns, with its name, unit, form and meaning, said once. Tables,
//! CSV, JSON, help and metrics are made from it.

pub mod call;
pub mod completion_queue;
pub mod device;
pub mod process;
pub mod queue_pair;

use std::borrow::Cow;

use serde_json::json;

use crate::display::{duration, printable};

pub use completion_queue::QueueRow;
pub use device::DeviceRow;
pub use process::{ProcessRow, State};

/// Stands for a number that there is not.
pub const ABSENT: &str = "n/a";

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A word.
    Word,
    /// A number that names something.
    Id,
    /// So many.
    Count,
    /// So many a second.
    PerSecond,
    /// So many for each of something else.
    Ratio,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes a second.
    BytesPerSecond,
    /// Parts of a hundred.
    Percent,
}

impl Unit {
    /// How lists of fields say it.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Word => "word",
            Unit::Id => "id",
            Unit::Count => "count",
            Unit::PerSecond => "1/s",
            Unit::Ratio => "ratio",
            Unit::Nanoseconds => "ns",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Percent => "%",
        }
    }

    /// Whether it lines up to the right.
    pub const fn is_number(self) -> bool {
        !matches!(self, Unit::Word)
    }
}

/// What one field of one row holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// It is not known, or there is none.
    Absent,
    /// A name.
    Text(Cow<'a, str>),
    /// An exact number.
    Number(u64),
    /// A quotient.
    Real(f64),
    /// One thing or the other.
    Flag(bool),
}

impl<'a> Value<'a> {
    /// A name.
    pub fn text(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }

    /// A number that may not be known.
    pub fn number(number: Option<u64>) -> Self {
        number.map_or(Value::Absent, Value::Number)
    }

    /// A quotient that may not be known.
    pub fn real(number: Option<f64>) -> Self {
        number.filter(|n| n.is_finite()).map_or(Value::Absent, Value::Real)
    }

    /// For people, made harmless for a terminal.
    pub fn shown(&self, unit: Unit) -> String {
        match (self, unit) {
            (Value::Absent, _) => ABSENT.to_owned(),
            (Value::Text(text), _) => printable(text),
            (Value::Number(ns), Unit::Nanoseconds) => duration(*ns),
            (Value::Number(n), Unit::BytesPerSecond) => bytes(*n as f64),
            (Value::Number(n), _) => n.to_string(),
            (Value::Real(n), Unit::BytesPerSecond) => bytes(*n),
            (Value::Real(n), Unit::PerSecond) => rate(*n),
            (Value::Real(n), _) => format!("{n:.2}"),
            (Value::Flag(flag), _) => if *flag { "yes" } else { "no" }.to_owned(),
        }
    }

    /// For programs, as one cell, names made harmless: nothing where nothing is known.
    pub fn plain(&self) -> String {
        match self {
            Value::Absent => String::new(),
            Value::Text(text) => printable(text),
            Value::Number(n) => n.to_string(),
            Value::Real(n) => format!("{n:.6}"),
            Value::Flag(flag) => flag.to_string(),
        }
    }

    /// For programs, as JSON.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::Absent => serde_json::Value::Null,
            Value::Text(text) => json!(text),
            Value::Number(n) => json!(n),
            Value::Real(n) => json!(n),
            Value::Flag(flag) => json!(flag),
        }
    }

    /// The order of a column: what is not known comes first.
    pub fn order(&self, other: &Value<'_>) -> std::cmp::Ordering {
        let rank = |value: &Value<'_>| match value {
            Value::Absent => 0,
            Value::Flag(_) => 1,
            Value::Number(_) | Value::Real(_) => 2,
            Value::Text(_) => 3,
        };
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Flag(a), Value::Flag(b)) => a.cmp(b),
            // Exactly: as floating point, large numbers would be equal that are not.
            (Value::Number(a), Value::Number(b)) => a.cmp(b),
            (Value::Real(a), Value::Real(b)) => a.total_cmp(b),
            (Value::Number(a), Value::Real(b)) => (*a as f64).total_cmp(b),
            (Value::Real(a), Value::Number(b)) => a.total_cmp(&(*b as f64)),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in JSON and CSV, and for filters.
    pub name: &'static str,
    /// Its head in tables.
    pub title: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What it means.
    pub description: &'static str,
    /// Whether tables have it unless someone chooses otherwise.
    pub usual: bool,
}

/// One field of rows of the type `R`, of a time of so many seconds.
pub struct Field<R> {
    /// What it is.
    pub column: Column,
    /// Its value, given the row and the seconds that the row is of.
    pub read: for<'a> fn(&'a R, f64) -> Value<'a>,
}

impl<R> Field<R> {
    const fn new(
        name: &'static str,
        title: &'static str,
        unit: Unit,
        description: &'static str,
        read: for<'a> fn(&'a R, f64) -> Value<'a>,
    ) -> Self {
        Field { column: Column { name, title, unit, description, usual: true }, read }
    }

    /// Only shown if someone asks for it.
    const fn on_demand(mut self) -> Self {
        self.column.usual = false;
        self
    }
}

/// The field of that name.
pub fn named<R>(fields: &'static [Field<R>], name: &str) -> Option<&'static Field<R>> {
    fields.iter().find(|field| field.column.name == name)
}

/// So many in so many seconds.
pub(crate) fn per_second<'a>(count: u64, seconds: f64) -> Value<'a> {
    Value::real((seconds > 0.0).then(|| count as f64 / seconds))
}

/// A number a second, with as many digits as tell something.
pub fn rate(value: f64) -> String {
    match value {
        n if n <= 0.0 => "0".to_owned(),
        n if n < 10.0 => format!("{n:.2}"),
        n if n < 100.0 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

/// Bytes, with a unit.
pub fn bytes(value: f64) -> String {
    match value {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.1} GB", n / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn sound<R>(fields: &[Field<R>]) {
        let names: BTreeSet<&str> = fields.iter().map(|field| field.column.name).collect();
        assert_eq!(names.len(), fields.len(), "two fields have one name");
        for Field { column, .. } in fields {
            assert!(column.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            assert!(column.description.ends_with('.') && !column.title.is_empty(), "{}", column.name);
        }
        assert!(fields.iter().any(|field| field.column.usual));
    }

    #[test]
    fn every_field_has_a_name_of_its_own_and_a_description() {
        sound(call::FIELDS);
        sound(completion_queue::FIELDS);
        sound(device::FIELDS);
        sound(process::FIELDS);
        sound(queue_pair::FIELDS);
    }

    #[test]
    fn what_is_not_known_is_never_a_number() {
        let absent = Value::real(Some(f64::NAN));
        assert_eq!(absent, Value::Absent);
        assert_eq!(
            (absent.shown(Unit::Count), absent.plain(), absent.json()),
            ("n/a".into(), "".into(), json!(null))
        );
        assert_eq!(per_second(5, 0.0), Value::Absent);
        assert_eq!(per_second(5, 2.0), Value::Real(2.5));
    }

    #[test]
    fn large_numbers_are_told_apart() {
        let [a, b] = [u64::MAX, u64::MAX - 1].map(Value::Number);
        assert!(a.order(&b).is_gt());
        assert!(Value::Absent.order(&Value::Number(0)).is_lt());
        assert!(Value::Number(2).order(&Value::Real(2.5)).is_lt());
    }

    #[test]
    fn numbers_have_as_many_digits_as_tell_something() {
        assert_eq!([0.0, 0.123, 12.34, 123.4].map(rate), ["0", "0.12", "12.3", "123"]);
        assert_eq!([0.0, 999.0, 1234.0, 5e6, 7e9].map(bytes), ["0 B", "999 B", "1.2 kB", "5.0 MB", "7.0 GB"]);
    }

    #[test]
    fn names_are_harmless() {
        let name = Value::text("a\u{1b}[2J");
        assert_eq!([name.shown(Unit::Word), name.plain()], ["a\\u{1b}[2J"; 2]);
    }
}
