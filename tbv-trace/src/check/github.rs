//! What is wrong as annotations of a GitHub workflow.

use tbv_core::budget::{Outcome, Verdict};

use super::{breach, limit, mismatch, summary, whose};
use crate::text::printable;

pub(crate) fn annotations(verdict: &Verdict) -> String {
    let line = |kind: &str, what: &str, message: &str| {
        let title = format!("{}: {what}", verdict.budget);
        format!("::{kind} title={}::{}\n", property(&printable(&title)), data(&printable(message)))
    };
    let mut out = String::new();
    if verdict.outcome == Outcome::Lost {
        out += &line("error", "data was lost", &summary(verdict));
    } else if verdict.loss.total > 0 {
        let message = format!("{} events were lost: the counts are not exact", verdict.loss.total);
        out += &line("warning", "data was lost", &message);
    }
    for proof in verdict.proofs.iter().filter(|proof| !proof.holds) {
        let message = format!("{}: {}, {}", whose(proof.process.as_ref()), proof.what, mismatch(proof));
        out += &line("error", "cannot judge", &message);
    }
    for check in verdict.checks.iter().filter(|check| !check.holds) {
        let message = format!("{}: {}", whose(check.process.as_ref()), breach(check));
        out += &line("error", &limit(check), &message);
    }
    out
}

/// What follows the second `::`, as the toolkit's `escapeData` writes it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A value before it, as `escapeProperty` writes it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_an_annotation() {
        assert_eq!(data("50 % of a: b, c\r\nd"), "50 %25 of a: b, c%0D%0Ad");
        assert_eq!(property("50 %\r\na: b, c"), "50 %25%0D%0Aa%3A b%2C c");
    }
}
