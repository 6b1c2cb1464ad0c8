//! What looking at it ten times a second takes of a processor.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::guest::{self, spread};

/// What the guest runs, in the workspace: the guest sees this machine's files.
const SCRIPT: &str = "xtask/src/bench/load.sh";
const ARMS: [(&str, &str); 3] = [
    ("screen", "tbv-top -i 0.1"),
    ("batch", "tbv-top --batch -f jsonl -i 0.1"),
    ("record", "tbv-trace record -i 0.1"),
];

pub(super) fn run(rounds: u32) -> Result<String> {
    let mut values = [Vec::new(), Vec::new(), Vec::new()];
    guest::lines(SCRIPT, rounds, ARMS.len() as u32 * rounds, |line| add(&mut values, line))?;
    Ok(table(&values))
}

fn add(values: &mut [Vec<f64>; 3], line: &str) -> Result<()> {
    let Some((arm, value)) = line.split_once(' ') else { bail!("not two words") };
    let arm = ARMS.iter().position(|(name, _)| *name == arm).context("no such arm")?;
    let of = values.get_mut(arm).context("no such arm")?;
    of.push(value.parse()?);
    Ok(())
}

fn table(values: &[Vec<f64>; 3]) -> String {
    let mut table = "percent of a processor                 median (least – most)\n".to_owned();
    for ((_, what), values) in ARMS.iter().zip(values) {
        let [least, median, most] = spread(values);
        let _ = writeln!(table, "{what:<34}{:>26}", format!("{median:.1} ({least:.1} – {most:.1})"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_a_table() {
        let mut values = [Vec::new(), Vec::new(), Vec::new()];
        for line in ["screen 3", "record 1", "screen 5"] {
            add(&mut values, line).unwrap();
        }
        assert!(table(&values).contains("4.0 (3.0 – 5.0)"), "{}", table(&values));
        for wrong in ["", "screen", "screen x", "other 1", "screen 1 2"] {
            assert!(add(&mut values, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_script_is_there() {
        assert!(crate::paths::root().join(SCRIPT).is_file());
    }
}
