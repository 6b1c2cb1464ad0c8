//! Ioctls per iteration before and after: what the runs of both arms amount to.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What polls completions by system call, and what takes them from memory.
const ARMS: [&str; 2] = ["ioctl", "mapped"];
/// Operations that messages make; the others set up and end.
const PER_MESSAGE: [&str; 3] = ["POST_SEND", "POST_RECV", "POLL_CQ"];
const OTHERS: &str = "set-up and end";
const ALL: &str = "all";

const LESSON: &str = "
Each side of ib_send_lat posts one send and one receive an iteration, and waits for two completions. Polled by system
call, that takes an ioctl for every completion and for every look at an empty queue: how many, depends on the machine.
Polled from memory it takes none. All counts are exact (loss: none in every run, or it would have stopped here).
What one run looks like: cargo xtask vm -it -- bash, then
  tbv-trace run --iterations 1000 -- sh xtask/src/demo/both-sides.sh usb4_rdma0 usb4_rdma1 127.0.0.1 1000";

/// Runs so far.
pub(super) struct Proof {
    iterations: u32,
    /// Of each arm and operation, ioctls per iteration of one side, run by run.
    rates: BTreeMap<(&'static str, &'static str), Vec<f64>>,
    runs: u32,
    /// Module and provider of the first run.
    files: Option<(String, String)>,
}

impl Proof {
    pub(super) fn new(iterations: u32) -> Self {
        Proof { iterations, rates: BTreeMap::new(), runs: 0, files: None }
    }

    pub(super) fn runs(&self) -> u32 {
        self.runs
    }

    /// Takes in a run, a line of the guest's; says what it was. That its work was done is known already.
    pub(super) fn add(&mut self, line: &str) -> Result<String> {
        let run: Value = serde_json::from_str(line).with_context(|| format!("not a run: {line}"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let arm = ARMS.into_iter().find(|arm| run["arm"] == *arm).context("a run of no arm")?;
        let report = &run["report"];
        let (module, provider) = (text(&run["meant"]["module"]), text(&run["meant"]["provider"]));
        let modules = report["environment"]["modules"].as_array().context("no modules")?;
        let loaded = modules.iter().find(|module| module["name"] == "thunderbolt_ibverbs");
        let loaded = loaded.map_or_else(String::new, |module| text(&module["srcversion"]));
        ensure!(!module.is_empty() && loaded == module, "module {loaded:?} is loaded, not {module:?}");
        let used = text(&run["loaded"]);
        ensure!(!provider.is_empty() && used == provider, "provider {used:?} was used, not {provider:?}");
        let files = (module, provider);
        ensure!(
            self.files.get_or_insert_with(|| files.clone()) == &files,
            "other files than in the first run"
        );
        let queues = report["completions"].as_array().context("no completion queues")?;
        let mapped = arm == "mapped";
        ensure!(
            !queues.is_empty() && queues.iter().all(|queue| queue["mapped"] == mapped),
            "completions were not polled as in arm {arm}"
        );
        let calls = report["calls"].as_array().context("no calls")?;
        let mut counts = BTreeMap::from(PER_MESSAGE.map(|op| (op, 0)));
        for call in calls {
            let count = call["count"].as_u64().context("a call without count")?;
            let op = PER_MESSAGE.into_iter().find(|op| call["op"] == *op).unwrap_or(OTHERS);
            *counts.entry(op).or_insert(0) += count;
            *counts.entry(ALL).or_insert(0) += count;
        }
        for (op, count) in &counts {
            let rate = *count as f64 / f64::from(2 * self.iterations);
            self.rates.entry((arm, op)).or_default().push(rate);
        }
        self.runs += 1;
        let all = counts[ALL] as f64 / f64::from(2 * self.iterations);
        Ok(format!("{arm}: {all:.2} ioctls per iteration"))
    }

    /// The table and what it means.
    pub(super) fn table(&self) -> Result<String> {
        let (module, provider) = self.files.as_ref().context("there was no run")?;
        let rounds = self.runs / 2;
        let mut table = format!(
            "ib_send_lat -n {}, {rounds} rounds of both arms in turn; module {module}, provider {}…\n\
             ioctls per iteration of one side: median (least – most)\n\n\
             {:<16}{:>26}{:>26}\n",
            self.iterations,
            provider.get(..12).unwrap_or(provider),
            "OPERATION",
            "POLLED BY IOCTL",
            "POLLED FROM MEMORY"
        );
        for op in PER_MESSAGE.into_iter().chain([OTHERS, ALL]) {
            let cells =
                ARMS.map(|arm| self.rates.get(&(arm, op)).map_or_else(String::new, |rates| cell(rates)));
            let _ = writeln!(table, "{op:<16}{:>26}{:>26}", cells[0], cells[1]);
        }
        Ok(table + LESSON)
    }
}

fn cell(rates: &[f64]) -> String {
    let mut rates = rates.to_vec();
    rates.sort_by(f64::total_cmp);
    let (low, high) = (rates.len().saturating_sub(1) / 2, rates.len() / 2);
    match (rates.first(), rates.get(low), rates.get(high), rates.last()) {
        (Some(least), Some(low), Some(high), Some(most)) => {
            format!("{:.2} ({least:.2} – {most:.2})", low.midpoint(*high))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arm: &str, mapped: bool, loaded: &str, used: &str, polls: u64) -> String {
        format!(
            r#"{{"arm":"{arm}","round":1,"meant":{{"module":"ABC","provider":"0123456789abcdef"}},"loaded":"{used}",
            "report":{{"environment":{{"modules":[{{"name":"thunderbolt_ibverbs","srcversion":"{loaded}"}}]}},
            "completions":[{{"mapped":{mapped}}}],"calls":[{{"op":"POST_SEND","count":2000}},
            {{"op":"POLL_CQ","count":{polls}}},{{"op":"QUERY_GID","count":20}}]}}}}"#
        )
        .replace('\n', "")
    }

    const USED: &str = "0123456789abcdef";

    #[test]
    fn rates_are_of_one_side() {
        let mut proof = Proof::new(1000);
        assert_eq!(
            proof.add(&line("ioctl", false, "ABC", USED, 14_000)).unwrap(),
            "ioctl: 8.01 ioctls per iteration"
        );
        proof.add(&line("mapped", true, "ABC", USED, 0)).unwrap();
        proof.add(&line("ioctl", false, "ABC", USED, 16_000)).unwrap();
        let table = proof.table().unwrap();
        let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(
            row("POLL_CQ").contains("7.50 (7.00 – 8.00)") && row("POLL_CQ").contains("0.00 (0.00 – 0.00)")
        );
        assert!(row("POST_SEND").contains("1.00 (1.00 – 1.00)"));
        assert!(row("all").ends_with("1.01 (1.01 – 1.01)"), "{table}");
    }

    #[test]
    fn a_run_on_other_files_or_another_path_is_refused() {
        let refused = |line: String| Proof::new(1000).add(&line).unwrap_err().to_string();
        assert!(refused(line("ioctl", false, "XYZ", USED, 1)).contains("module \"XYZ\""));
        assert!(refused(line("ioctl", false, "ABC", "other", 1)).contains("provider \"other\""));
        assert!(refused(line("ioctl", true, "ABC", USED, 1)).contains("arm ioctl"));
        assert!(refused(line("mapped", false, "ABC", USED, 1)).contains("arm mapped"));
        assert!(refused("tbv".to_owned()).contains("not a run"));
        assert!(Proof::new(1000).table().is_err());
    }
}
