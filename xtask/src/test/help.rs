//! What `cargo xtask test --help` says of the tiers. The suites are listed from their table.

use super::suites::{BESIDE, HOST, Suite, VM};

pub(super) fn text() -> String {
    let tagged = |suite: &Suite| if suite.full_only { "  [--full only]" } else { "" };
    let list = |suites: &[Suite]| -> String {
        suites.iter().map(|s| format!("  {:<17} {}{}\n", s.name, s.what, tagged(s))).collect()
    };
    format!(
        "\
Tiers:
  quick   Without an option. About 20 minutes from a clean checkout on 2 idle cores, and 15 when all
          is built; on other machines more or less. Leaves out what is marked [--full only], and
          does less of some: in cq_published 20,000 waits for events instead of 1,000,000 and
          4 random moments of every end instead of 10; in driver_lifecycle 4 rounds instead of
          10; in probes 3,000 random messages instead of 10,000; in perftest_usb4 1, 3 and 8
          queue pairs instead of 1 to 8; in histograms a recording of 8 seconds instead of 60
          and a long run of 10 seconds instead of 30 minutes; in equality 8 rounds of 8 threads
          instead of 20; in completions 1 round of ending queues instead of 3; in gate 200
          iterations instead of 1,000 of runs that must not pass.
  --full  That and the suites marked [--full only], so all. Longer: the first time it also builds a
          debug kernel, ten minutes or more. Unless filtered, writes its summary to
          docs/results/test-full.md.
  Both leave out real hardware (all devices are software, or our driver's virtual cable) and kernels
  of other series than the guests' own, Linux 6.12.

On this machine:
{}
Each in a guest of its own:
{}
The exit code is 0 if every test passed and 1 if not.

Examples:
  cargo xtask test
  cargo xtask test --filter equality
  cargo xtask test --full",
        list(HOST) + &list(BESIDE),
        list(VM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_listed_and_marked_as_the_table_says() {
        let text = text();
        for suite in HOST.iter().chain(BESIDE).chain(VM) {
            let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{} ", suite.name)));
            let line = line.unwrap_or_else(|| panic!("{} in {text}", suite.name));
            assert!(line.contains(suite.what), "{line}");
            assert_eq!(line.ends_with("[--full only]"), suite.full_only, "{line}");
        }
    }
}
