//! Which suites there are.

use super::results::Counts;

/// One program that runs tests or is a test.
pub(super) struct Suite {
    /// Its name; in a guest, that of the file under vm-tests/tests.
    pub(super) name: &'static str,
    /// What it shows.
    pub(super) what: &'static str,
    /// The command, for one that runs on this machine.
    pub(super) command: &'static str,
    /// An environment variable of it.
    pub(super) env: Option<(&'static str, &'static str)>,
    /// Whether our own driver is loaded in its guest.
    pub(super) driver: bool,
    /// Whether its guest has the debug kernel.
    pub(super) debug_kernel: bool,
    /// More words for the guest kernel's command line.
    pub(super) append: &'static str,
    /// Seconds until its guest is killed.
    pub(super) limit_s: u64,
    /// Whether only --full runs it.
    pub(super) full_only: bool,
    /// Whether it reports tests one by one; else it is one test by itself.
    counts_tests: bool,
}

const fn check(name: &'static str, what: &'static str, command: &'static str) -> Suite {
    Suite {
        name,
        what,
        command,
        env: None,
        driver: false,
        debug_kernel: false,
        append: "",
        limit_s: 0,
        full_only: false,
        counts_tests: false,
    }
}

const fn vm(name: &'static str, what: &'static str) -> Suite {
    Suite {
        name,
        what,
        command: "",
        env: None,
        driver: false,
        debug_kernel: false,
        append: "",
        limit_s: 900,
        full_only: false,
        counts_tests: true,
    }
}

const fn driver(name: &'static str, what: &'static str) -> Suite {
    Suite { driver: true, ..vm(name, what) }
}

/// On this machine.
pub(super) const HOST: &[Suite] = &[
    check("rustfmt", "the code has the house's form", "cargo fmt --all --check"),
    Suite {
        counts_tests: true,
        ..check(
            "host",
            "tests that need no kernel of their own",
            "cargo test --quiet --workspace --no-fail-fast",
        )
    },
    check(
        "wire-fuzz",
        "10^6 good, random and mutated frames through the driver's decoder",
        "make -s -C kmod fuzz",
    ),
];

/// On this machine, too, but beside the guests, which leave much of a processor idle.
pub(super) const BESIDE: &[Suite] = &[
    check(
        "clippy",
        "no warning in any target",
        "cargo clippy --quiet --workspace --all-targets --features vm-tests/vm -- -D warnings",
    ),
    check("kmod-static", "sparse and checkpatch have nothing to say about the driver", "xtask check-kmod"),
    check("formats", "other implementations read what tbv-trace writes", "xtask check-formats"),
    // In a folder of its own, or both would be built anew every time.
    Suite {
        counts_tests: true,
        env: Some(("RUSTFLAGS", "--cfg loom")),
        ..check(
            "loom",
            "published completions, in every order of kernel and consumers",
            // One model after the other: loom maps and unmaps stacks all the time, and threads of one process wait for each
            // other there.
            "cargo test --quiet -p tbv-cq-ring --test loom --target-dir target/loom -- --test-threads=1",
        )
    },
];

/// Each in a guest of its own. Those that take long come first, so that none runs alone at the end.
pub(super) const VM: &[Suite] = &[
    Suite {
        debug_kernel: true,
        full_only: true,
        limit_s: 1800,
        ..driver("debug_kernel", "our driver under KASAN, lockdep and kmemleak")
    },
    driver(
        "histograms",
        "where the time of messages goes, against programs that know and faults that are known",
    ),
    Suite { full_only: true, ..vm("scale", "5,000 processes with 64 operations each") },
    vm("attach", "processes that run already, by pid, name, cgroup and device; single calls as a stream"),
    driver("completions", "work requests and completions of our driver, counted exactly, also from mid-run"),
    driver("usdt", "completions taken in user space, as the provider's probes tell"),
    vm("equality", "counts equal strace's in the same run"),
    vm("raw", "every hook against a client that knows what it sent"),
    vm("lifecycle", "start, end, signals, exit status, nothing left behind"),
    driver("perftest_usb4", "perftest and pingpong over the virtual cable"),
    driver("cq_published", "completion queues in user space: every completion once, whatever happens"),
    driver("probes", "every byte and every error of our driver and provider"),
    driver("top", "the live view: the numbers of tbv-trace, and whatever ends or goes is told"),
    driver("driver_lifecycle", "load, unload, killed clients: nothing left behind"),
    vm("missing_parts", "no BTF, tracefs, kprobes or function tracer: exact by another hook, or said"),
    Suite {
        append: "lockdown=integrity",
        ..vm("privileges", "nobody, some capabilities, all of them; under lockdown=integrity")
    },
    driver("qp_arrows", "every arrow of the state diagrams in docs/ARCHITECTURE.md"),
    driver("gate", "ioctl counts within the budgets of ci/, and a regressed provider found out"),
    vm("no_rdma", "a machine without RDMA"),
    Suite {
        append: "lockdown=confidentiality",
        ..vm("lockdown", "a kernel that forbids eBPF to read its memory")
    },
    driver("provider_abi", "a provider that does not know the module's ABI leaves the device alone"),
];

impl Suite {
    /// What the suite amounts to, given what it printed and how it ended.
    pub(super) fn judge(&self, mut counts: Counts, success: bool) -> Counts {
        if !self.counts_tests {
            return Counts { passed: success.into(), failed: (!success).into(), skipped: 0 };
        }
        // A suite that broke off, or printed no test, has failed whatever it counted.
        if (!success && counts.failed == 0) || counts.passed + counts.failed == 0 {
            counts.failed += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed, skipped: 0 }
    }

    #[test]
    fn a_suite_that_breaks_off_or_tests_nothing_fails() {
        let suite = vm("x", "");
        assert_eq!(suite.judge(counts(3, 0), true), counts(3, 0));
        assert_eq!(suite.judge(counts(3, 0), false), counts(3, 1));
        assert_eq!(suite.judge(counts(3, 2), false), counts(3, 2));
        assert_eq!(suite.judge(counts(0, 0), true), counts(0, 1));
        assert_eq!(check("x", "", "").judge(counts(0, 0), true), counts(1, 0));
        assert_eq!(check("x", "", "").judge(counts(9, 0), false), counts(0, 1));
    }
}
