//! A verdict as Markdown, for the summary of a workflow or a comment.

use tbv_core::budget::Verdict;

use super::text::{CHECKS, PROOFS, checks, facts, proofs, result};
use crate::text::{losses, printable};

pub(crate) fn markdown(verdict: &Verdict) -> String {
    let mut out = format!("### {}\n\n", escaped(&result(verdict)));
    for (name, fact) in facts(verdict) {
        out += &format!("* {name}: {}\n", escaped(&fact));
    }
    if verdict.loss.total > 0 {
        let words: Vec<String> = losses(&verdict.loss).split_whitespace().map(str::to_owned).collect();
        out += &format!("* {}\n", escaped(&words.join(" ")));
    }
    if !verdict.checks.is_empty() {
        out += &table(&CHECKS, 5, checks(verdict));
    }
    out + &table(&PROOFS, 4, proofs(verdict))
}

/// A table whose columns from `numbers` on are aligned to the right.
fn table(head: &[&str], numbers: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let lines = "---|".repeat(numbers) + &"--:|".repeat(head.len() - numbers);
    let head = row(head.iter().map(|cell| (*cell).to_owned()).collect());
    format!("\n{head}|{lines}\n{}", rows.map(row).collect::<String>())
}

fn row(cells: Vec<String>) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// So that a name stays a name: no cell, link, HTML or emphasis.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        if r"\`*[]<>|&~#".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_leave_its_cell() {
        let cells = ["a|b", "<b>*c*</b>", "d\ne"].map(str::to_owned);
        assert_eq!(row(cells.to_vec()), "| a\\|b | \\<b\\>\\*c\\*\\</b\\> | d\\\\ne |\n");
    }
}
