//! Throughput by number of queue pairs and message size, with completions polled in both ways.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result};

use super::guest::{self, spread};

/// What the guest runs, in the workspace: the guest sees this machine's files.
const SCRIPT: &str = "xtask/src/bench/sweep.sh";
/// Numbers of queue pairs × sizes × arms.
const RUNS: u32 = 4 * 3 * 2;
const ARMS: [&str; 2] = ["ioctl", "mapped"];

/// MiB/s of every run, by queue pairs and bytes, for each arm.
type Rates = BTreeMap<(u32, u32), [Vec<f64>; 2]>;

pub(super) fn run(rounds: u32) -> Result<String> {
    let mut rates = Rates::new();
    guest::lines(SCRIPT, rounds, RUNS * rounds, |line| add(&mut rates, line))?;
    Ok(table(&rates))
}

fn add(rates: &mut Rates, line: &str) -> Result<()> {
    let mut words = line.split(' ');
    let mut next = || words.next().context("a word is missing");
    let arm = next()?;
    let arm = ARMS.iter().position(|known| *known == arm).context("no such arm")?;
    let key = (next()?.parse()?, next()?.parse()?);
    rates.entry(key).or_default()[arm].push(next()?.parse()?);
    Ok(())
}

fn table(rates: &Rates) -> String {
    let mut table = format!(
        "ib_send_bw, MiB/s: median (least – most)\n\n{:>4}{:>10}{:>28}{:>28}{:>9}\n",
        "QPS", "BYTES", "POLLED BY IOCTL", "POLLED FROM MEMORY", "RATIO"
    );
    for ((qps, bytes), arms) in rates {
        let [ioctl, mapped] = arms.each_ref().map(|of| spread(of));
        let cell = |[least, median, most]: [f64; 3]| format!("{median:.0} ({least:.0} – {most:.0})");
        let _ = writeln!(
            table,
            "{qps:>4}{bytes:>10}{:>28}{:>28}{:>9.2}",
            cell(ioctl),
            cell(mapped),
            mapped[1] / ioctl[1]
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_a_table() {
        let mut rates = Rates::new();
        for line in ["ioctl 1 65536 100.0", "mapped 1 65536 150", "mapped 1 65536 250", "ioctl 1 65536 100"] {
            add(&mut rates, line).unwrap();
        }
        let table = table(&rates);
        assert!(table.contains("100 (100 – 100)") && table.contains("200 (150 – 250)"), "{table}");
        assert!(table.lines().last().unwrap().ends_with("2.00"), "{table}");
        for wrong in ["", "ioctl 1 65536", "ioctl 1 65536 ", "other 1 65536 100", "ioctl x 65536 100"] {
            assert!(add(&mut rates, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_script_is_there() {
        assert!(crate::paths::root().join(SCRIPT).is_file());
    }
}
