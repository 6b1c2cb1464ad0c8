//! What latency histograms cost a message.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result, bail};

use super::guest::{self, spread};

/// What the guest runs, in the workspace: the guest sees this machine's files.
const SCRIPT: &str = "xtask/src/bench/hist.sh";
const ARMS: [&str; 4] = ["off", "tracepoints", "hist", "streaming"];
const PROGRAMS: [(&str, &str); 2] =
    [("lat", "ib_send_lat, one way, microseconds"), ("bw", "ib_send_bw, microseconds a message")];

/// Values of every run, by program and arm.
type Values = BTreeMap<(usize, usize), Vec<f64>>;

pub(super) fn run(rounds: u32) -> Result<String> {
    let mut values = Values::new();
    let runs = (ARMS.len() * PROGRAMS.len()) as u32 * rounds;
    guest::lines(SCRIPT, rounds, runs, |line| add(&mut values, line))?;
    Ok(table(&values))
}

fn add(values: &mut Values, line: &str) -> Result<()> {
    let words: Vec<&str> = line.split(' ').collect();
    let [program, arm, value] = words[..] else { bail!("not three words") };
    let program = PROGRAMS.iter().position(|(name, _)| *name == program).context("no such program")?;
    let arm = ARMS.iter().position(|name| *name == arm).context("no such arm")?;
    values.entry((program, arm)).or_default().push(value.parse()?);
    Ok(())
}

fn table(values: &Values) -> String {
    let mut table = String::new();
    for (program, (_, what)) in PROGRAMS.iter().enumerate() {
        let gap = if program > 0 { "\n" } else { "" };
        let _ = writeln!(table, "{gap}{what}: median (least – most), and how much more than off");
        let of = |arm: usize| values.get(&(program, arm)).map_or([f64::NAN; 3], |values| spread(values));
        let [_, off, _] = of(0);
        for (arm, name) in ARMS.iter().enumerate() {
            let [least, median, most] = of(arm);
            let spread = format!("{median:.1} ({least:.1} – {most:.1})");
            let _ = writeln!(table, "{name:<12}{spread:>28}{:>+10.1}", median - off);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_a_table() {
        let mut values = Values::new();
        for line in ["lat off 10", "lat hist 14.5", "lat hist 15.5", "bw off 3", "bw streaming 5"] {
            add(&mut values, line).unwrap();
        }
        let table = table(&values);
        let line = |begin: &str| table.lines().find(|line| line.starts_with(begin)).unwrap();
        assert!(line("hist").ends_with("15.0 (14.5 – 15.5)      +5.0"), "{table}");
        for wrong in ["", "lat off", "lat off x", "lat on 1", "write off 1", "lat off 1 2"] {
            assert!(add(&mut values, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_script_is_there() {
        assert!(crate::paths::root().join(SCRIPT).is_file());
    }
}
