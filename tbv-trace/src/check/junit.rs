//! A verdict as JUnit XML: a test case for every demand and every limit. A limit that is exceeded is a failure; what
//! keeps from judging is an error.

use tbv_core::budget::{Outcome, Verdict};

use super::{breach, limit, mismatch, summary, whose};
use crate::text::printable;

pub(crate) fn junit(verdict: &Verdict) -> String {
    let mut cases = Vec::new();
    for proof in &verdict.proofs {
        let problem = (!proof.holds).then(|| ("error", mismatch(proof)));
        cases.push((format!("{}: {}", whose(proof.process.as_ref()), proof.what), problem));
    }
    for check in &verdict.checks {
        let problem = (!check.holds).then(|| ("failure", breach(check)));
        cases.push((format!("{}: {}", whose(check.process.as_ref()), limit(check)), problem));
    }
    if verdict.outcome == Outcome::Lost {
        cases.push(("run: loss".to_owned(), Some(("error", summary(verdict)))));
    }
    let count = |kind| cases.iter().filter(|(_, p)| p.as_ref().is_some_and(|(k, _)| *k == kind)).count();
    let (tests, failures, errors) = (cases.len(), count("failure"), count("error"));
    let budget = escaped(&verdict.budget);
    let counts = format!(r#"name="{budget}" tests="{tests}" failures="{failures}" errors="{errors}""#);
    let mut out = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n");
    out += &format!("  <testsuite {counts}>\n");
    for (name, problem) in cases {
        out += &format!(r#"    <testcase classname="{budget}" name="{}""#, escaped(&name));
        out += &match problem {
            Some((kind, message)) => {
                format!(">\n      <{kind} message=\"{}\"/>\n    </testcase>\n", escaped(&message))
            }
            None => "/>\n".to_owned(),
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// For an attribute in double quotes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&apos;",
            // XML 1.0 has no way to write them.
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_break_the_xml() {
        assert_eq!(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;");
        assert_eq!(escaped("\u{1b}[31m\n\u{0}\u{ffff}é"), "\\u{1b}[31m\\n\\u{0}\\u{ffff}é");
    }
}
