//! Throughput by number of queue pairs and message size, with completions polled in both ways.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use anyhow::{Context as _, Result, ensure};

use crate::{build, paths, process};

/// What the guest runs, in the workspace: the guest sees this machine's files.
const SCRIPT: &str = "xtask/src/bench/sweep.sh";
/// Numbers of queue pairs × sizes × arms.
const RUNS: u32 = 4 * 3 * 2;
const ARMS: [&str; 2] = ["ioctl", "mapped"];

/// MiB/s of every run, by queue pairs and bytes, for each arm.
type Rates = BTreeMap<(u32, u32), [Vec<f64>; 2]>;

pub(super) fn run(rounds: u32) -> Result<String> {
    build::all(false)?;
    let limit = (120 + RUNS * rounds * 30).to_string();
    let mut guest = process::xtask(["vm", "--no-build", "--timeout", &limit, "--", "sh", SCRIPT])?
        .arg(rounds.to_string())
        .current_dir(paths::root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the guest")?;
    let mut rates = Rates::new();
    let output = BufReader::new(guest.stdout.take().context("no output to read")?);
    for (number, line) in (1..).zip(output.lines()) {
        let line = line.context("reading the guest's output")?;
        add(&mut rates, &line).with_context(|| format!("not a run: {line:?}"))?;
        eprintln!("bench: {number}/{} {line} MiB/s", RUNS * rounds);
    }
    let status = guest.wait().context("waiting for the guest")?;
    ensure!(status.success(), "the guest: {status}");
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

/// Least, median and most.
fn spread(of: &[f64]) -> [f64; 3] {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
    let last = sorted.len().saturating_sub(1);
    [at(0), at(last / 2).midpoint(at(sorted.len() / 2)), at(last)]
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
        assert!(paths::root().join(SCRIPT).is_file());
    }
}
