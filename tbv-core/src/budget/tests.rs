use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    Hook, Names, Report,
    devices::Devices,
    environment::Environment,
    report::{Call, Completions, Interval, Totals, WorkRequests},
    snapshot::Snapshot,
};

const N: u64 = 1000;
const PIDS: [u32; 2] = [4242, 4243];
const HEAD: &str = "budget_version = 1\nname = \"x\"\n";
const WORK: &str = "[work]\nprocesses = 2\npost_send.SEND = \"N\"\npost_recv = \"N\"\ncompletions = \"2N\"\n";
const LIMIT: &str = "[[limit]]\nop = \"*\"\nper = \"run\"\nat_most = 5000\n";

fn parse(text: &str) -> Result<Budget, String> {
    Budget::parse(text)
}

fn budget(limits: &str) -> Budget {
    parse(&format!("{HEAD}{WORK}{limits}")).unwrap()
}

fn limit(op: &str, per: &str, bound: &str) -> String {
    format!("[[limit]]\nop = \"{op}\"\nper = \"{per}\"\n{bound}\n")
}

fn call(pid: u32, op: &str, count: u64) -> Call {
    Call {
        pid,
        ns_pid: None,
        comm: "ib_send_lat".to_owned(),
        cgroup: None,
        device: "usb4_rdma0".to_owned(),
        entry: "ioctl".to_owned(),
        op: op.to_owned(),
        count,
        errors: 0,
        errnos: BTreeMap::new(),
        latency_ns: None,
        latency_sum_ns: None,
        latency_buckets: None,
    }
}

/// Two processes that each send and receive N messages; `polls` calls of POLL_CQ each, 150 of others.
fn report(polls: u64, mapped: bool) -> Report {
    let environment = Environment::read(std::path::Path::new("/nowhere"), Hook::Fentry, &[], &Devices::new());
    let mut report = Report::new(&Snapshot::default(), environment, &Names::default());
    report.environment.mode = "ioctl".to_owned();
    report.environment.driver_trace_abi = Some(1);
    report.exit_status = Some(0);
    for pid in PIDS {
        for (op, count) in [("POST_SEND", N), ("POST_RECV", N), ("QUERY_PORT", 150), ("POLL_CQ", polls)] {
            report.calls.extend((count > 0).then(|| call(pid, op, count)));
        }
        for cqn in [1, 2] {
            report.completions.push(Completions {
                pid,
                device: "usb4_rdma0".to_owned(),
                cqn,
                entries: 512,
                mapped,
                destroyed: None,
                produced: N,
                consumed: N,
                consumed_by_ioctl: if mapped { 0 } else { N },
                failed: 0,
                overflows: 0,
                occupancy_max: 1,
                consumed_in_user_space: None,
                purged: 0,
                untimed: None,
                occupancy_mean: None,
                polls_hit: None,
                polls_empty: None,
                polls_overflow: None,
                polled: None,
                before: None,
            });
        }
        for (queue, opcode) in [("send", "SEND"), ("receive", "RECV")] {
            report.work_requests.push(WorkRequests {
                pid,
                device: "usb4_rdma0".to_owned(),
                queue: queue.to_owned(),
                opcode: opcode.to_owned(),
                posted: N,
                signalled: N,
            });
        }
    }
    // Someone who did no work.
    report.calls.push(call(7, "POLL_CQ", 9));
    report.totals = None;
    report
}

fn judge(budget: &Budget, report: &Report) -> Verdict {
    budget.judge(report, N, false).unwrap()
}

fn outcome(limits: &str, polls: u64) -> Outcome {
    judge(&budget(limits), &report(polls, false)).outcome
}

/// What does not hold of the proof, where the change was made to a good report.
fn unproven(budget: &Budget, change: impl Fn(&mut Report)) -> Vec<String> {
    let mut report = report(4000, false);
    change(&mut report);
    let verdict = judge(budget, &report);
    let wrong = verdict.proofs.iter().filter(|proof| !proof.holds);
    let wrong: Vec<String> = wrong.map(|p| format!("{}: {} not {}", p.what, p.found, p.expected)).collect();
    assert_eq!(verdict.outcome == Outcome::Unproven, !wrong.is_empty());
    assert_eq!(verdict.checks.is_empty(), !wrong.is_empty());
    wrong
}

#[test]
fn budgets_that_cannot_be_used_say_what_is_wrong_and_where() {
    let bad = |text: &str, message: &str| {
        let error = parse(text).unwrap_err();
        assert!(error.contains(message), "{error}\nwithout: {message}\nin: {text}");
    };
    let whole = |part: &str| format!("{HEAD}{part}\n{LIMIT}");
    bad("", "missing field `budget_version`");
    bad("budget_version = 2\nanything = 1", "budget version 2 is not the one");
    bad("budget_version = 1\nname = [", "line 2: ");
    bad(&whole("[work]\npots_send = \"N\""), "line 4: unknown field `pots_send`");
    bad(&whole("colour = 1"), "line 3: unknown field `colour`");
    bad(&whole("[environment]\ncq = \"magic\""), "line 4: unknown variant `magic`");
    bad(&whole("[work]\ncompletions = \"N/2\""), "line 4: `N/2` is no count of iterations");
    bad(&whole("[work]\npost_send = 1.5"), "line 4: expected a count such as \"N\"");
    bad(&whole("[work.calls]\nPOLLCQ = \"N\""), "there is no operation `POLLCQ`");
    bad(HEAD, "it has no [[limit]]");
    let bad_limit = |limit: &str, message: &str| bad(&format!("{HEAD}\n{limit}"), message);
    bad_limit(&limit("POLL_CQ", "iteration", ""), "exactly one of equal, at_most and at_least");
    bad_limit(&limit("POLL_CQ", "run", "equal = 1\nat_most = 2"), "line 4: a limit has exactly one");
    bad_limit(&limit("POLL_CQ", "second", "equal = 1"), "line 6: unknown variant `second`");
    bad_limit(&limit("POLCQ", "run", "equal = 1"), "there is no operation `POLCQ`");
    bad_limit(&limit("*", "run", "unequal = 1"), "unknown field `unequal`");
    for number in ["nan", "inf", "-1"] {
        bad_limit(&limit("*", "run", &format!("at_most = {number}")), "is no number of calls");
    }
    bad_limit(&limit("*", "run", "at_least = 0"), "always holds");
}

#[test]
fn a_gate_without_work_or_iterations_is_no_gate() {
    let error = |text: &str, n| {
        let budget = parse(text).unwrap();
        budget.judge(&report(0, false), n, false).unwrap_err().to_string()
    };
    let none = format!("{HEAD}{LIMIT}");
    assert!(error(&none, N).contains("no work is declared"));
    let nothing = format!("{HEAD}[work]\npost_send = \"0\"\ncompletions = \"N-1000\"\n{LIMIT}");
    assert!(error(&nothing, N).contains("no work is declared"));
    let good = format!("{HEAD}{WORK}{LIMIT}");
    assert!(error(&good, 0).contains("0 iterations"));
    assert!(error(&good, u64::MAX).contains("2N is no count where N is"));
    let rate = format!("{HEAD}[work]\npost_send = \"N\"\n{}", limit("*", "completion", "at_most = 1"));
    assert!(error(&rate, N).contains("needs completions"));
}

#[test]
fn limits_are_per_iteration_completion_or_run() {
    use Outcome::{Exceeded, Passed};
    for (op, per, bound, polls, expected) in [
        ("POLL_CQ", "iteration", "equal = 4", 4000, Passed),
        ("POLL_CQ", "iteration", "equal = 4", 4001, Exceeded),
        ("POLL_CQ", "iteration", "equal = 4", 3999, Exceeded),
        ("POLL_CQ", "completion", "at_most = 2", 4000, Passed),
        ("POLL_CQ", "completion", "at_most = 2", 4001, Exceeded),
        ("POLL_CQ", "completion", "at_least = 2", 4000, Passed),
        ("POLL_CQ", "completion", "at_least = 2", 3999, Exceeded),
        ("POLL_CQ", "run", "at_most = 0", 0, Passed),
        ("POLL_CQ", "run", "at_most = 0", 1, Exceeded),
        ("POLL_CQ", "run", "at_least = 1", 0, Exceeded),
        ("*", "iteration", "at_most = 2.15", 0, Passed),
        ("*", "iteration", "at_most = 2.15", 1, Exceeded),
        ("*", "run", "equal = 2155", 5, Passed),
    ] {
        assert_eq!(outcome(&limit(op, per, bound), polls), expected, "{op} {per} {bound} {polls}");
    }
}

#[test]
fn each_process_that_worked_is_judged_and_every_breach_named() {
    let limits = limit("POST_SEND", "iteration", "equal = 1")
        + &limit("POLL_CQ", "run", "at_most = 0")
        + &limit("*", "run", "at_most = 2200");
    let mut report = report(100, false);
    report.calls.iter_mut().find(|call| call.op == "POST_SEND").unwrap().count += 1;
    let verdict = judge(&budget(&limits), &report);
    let breaches: Vec<_> = verdict
        .checks
        .iter()
        .filter(|check| !check.holds)
        .map(|check| (check.process.as_ref().unwrap().pid, check.op.as_str(), check.calls))
        .collect();
    assert_eq!(verdict.outcome, Outcome::Exceeded);
    assert_eq!(
        breaches,
        [
            (4242, "POST_SEND", 1001),
            (4242, "POLL_CQ", 100),
            (4242, "*", 2251),
            (4243, "POLL_CQ", 100),
            (4243, "*", 2250)
        ]
    );
    assert_eq!(verdict.checks.len(), 6);
}

#[test]
fn the_total_is_of_every_process() {
    let work = "[work]\nscope = \"total\"\npost_send = \"2N\"\ncompletions = \"4N\"\n";
    let polls = |count| limit("POLL_CQ", "run", &format!("equal = {count}"));
    let of = |limits: &str| judge(&parse(&format!("{HEAD}{work}{limits}")).unwrap(), &report(10, false));
    let verdict = of(&polls(29));
    assert_eq!((verdict.outcome, verdict.checks.len()), (Outcome::Passed, 1));
    assert_eq!(of(&polls(20)).outcome, Outcome::Exceeded);
}

#[test]
fn work_that_is_not_proven_is_not_judged() {
    let budget = budget(LIMIT);
    let unproven = |change: &dyn Fn(&mut Report)| unproven(&budget, change);
    assert_eq!(unproven(&|_| {}), [""; 0]);
    assert_eq!(unproven(&|r| r.exit_status = Some(1)), ["exit status: 1 not 0"]);
    assert_eq!(unproven(&|r| r.exit_status = None), ["exit status: none not 0"]);
    assert_eq!(unproven(&|r| r.completions[0].produced -= 1), ["completions: 1999 not 2000"]);
    assert_eq!(unproven(&|r| r.completions[3].produced += 1), ["completions: 2001 not 2000"]);
    assert_eq!(unproven(&|r| r.completions[0].failed = 1), ["failed_completions: 1 not 0"]);
    assert_eq!(
        unproven(&|r| (r.work_requests[0].posted, r.work_requests[1].posted) = (999, 1001)),
        ["post_send.SEND: 999 not 1000", "post_send: 999 not 1000", "post_recv: 1001 not 1000"]
    );
    let other = |r: &mut Report| {
        r.work_requests.push(WorkRequests { opcode: "RDMA_READ".to_owned(), ..r.work_requests[0].clone() });
    };
    assert_eq!(unproven(&other), ["post_send: 2000 not 1000"]);
    let one_side = |r: &mut Report| {
        r.work_requests.retain(|work| work.pid == PIDS[0]);
        r.completions.retain(|cq| cq.pid == PIDS[0]);
    };
    assert_eq!(unproven(&one_side), ["processes that did work: 1 not 2"]);
    assert_eq!(unproven(&|r| r.keep_failed()).first().unwrap(), "rows: --failed not all");
    assert_eq!(unproven(&|r| r.keep_top(100)), ["rows: --top 100 not all"]);
    let missing = |r: &mut Report| r.totals = Some(Totals { count: 99_999, errors: 0 });
    assert_eq!(unproven(&missing), ["calls in rows: 12309 not 99999"]);
    let part = |r: &mut Report| r.interval = Some(Interval { number: 2, start_ns: 0, end_ns: 1 });
    assert_eq!(unproven(&part), ["time: interval 2 not whole run"]);
    let huge = |r: &mut Report| r.completions.iter_mut().for_each(|cq| cq.produced = u64::MAX);
    assert_eq!(unproven(&huge).len(), 2);
    let idle = |r: &mut Report| {
        r.work_requests.clear();
        r.completions.clear();
    };
    assert_eq!(unproven(&idle), ["processes that did work: 0 not 2"]);
}

#[test]
fn the_path_is_a_part_of_the_proof() {
    let with = |path: &str| parse(&format!("{HEAD}{WORK}[environment]\n{path}\n{LIMIT}")).unwrap();
    let ioctl = with("cq = \"ioctl\"\nmode = \"ioctl\"");
    assert_eq!(unproven(&ioctl, |_| {}), [""; 0]);
    assert_eq!(
        unproven(&ioctl, |r| r.completions[2].mapped = true),
        ["completion queues: 1 mapped, 3 ioctl not ioctl"]
    );
    assert_eq!(unproven(&ioctl, |r| r.environment.mode = "mixed".to_owned()), ["mode: mixed not ioctl"]);
    let mapped = with("cq = \"mapped\"");
    assert_eq!(unproven(&mapped, |_| {}), ["completion queues: 4 ioctl not mapped"]);
    assert_eq!(judge(&mapped, &report(0, true)).outcome, Outcome::Passed);
}

#[test]
fn other_drivers_prove_their_work_by_calls() {
    let mut rxe = report(0, false);
    rxe.work_requests.clear();
    rxe.completions.clear();
    rxe.environment.driver_trace_abi = None;
    let with = |work: &str| parse(&format!("{HEAD}[work]\nscope = \"total\"\n{work}\n{LIMIT}")).unwrap();
    assert_eq!(judge(&with("calls.POST_SEND = \"2N\""), &rxe).outcome, Outcome::Passed);
    for (work, found) in
        [("post_send", "not visible"), ("completions", "not visible"), ("calls.POLL_CQ", "9")]
    {
        let verdict = judge(&with(&format!("{work} = \"2N\"")), &rxe);
        assert_eq!(verdict.outcome, Outcome::Unproven);
        assert_eq!(verdict.proofs.iter().find(|proof| !proof.holds).unwrap().found, found);
    }
    // A call that failed is no work.
    rxe.calls[0].errors = 1;
    assert_eq!(judge(&with("calls.POST_SEND = \"2N\""), &rxe).outcome, Outcome::Unproven);
    let each = parse(&format!("{HEAD}[work]\nprocesses = 2\ncalls.POST_RECV = \"N\"\n{LIMIT}")).unwrap();
    assert_eq!(judge(&each, &rxe).checks.len(), 2);
}

#[test]
fn lost_counts_are_judged_unless_they_have_to_be_exact() {
    let mut lossy = report(100, false);
    lossy.loss.total = 1;
    assert_eq!(judge(&budget(LIMIT), &lossy).outcome, Outcome::Passed);
    let verdict = budget(LIMIT).judge(&lossy, N, true).unwrap();
    assert_eq!((verdict.outcome, verdict.checks.len()), (Outcome::Lost, 0));
    lossy.exit_status = Some(1);
    assert_eq!(budget(LIMIT).judge(&lossy, N, true).unwrap().outcome, Outcome::Lost);
    assert_eq!(budget(LIMIT).judge(&report(100, false), N, true).unwrap().outcome, Outcome::Passed);
}

#[test]
fn the_command_line_adds_work_and_overrides_it() {
    let mut budget = budget(LIMIT);
    let expect = |budget: &mut Budget, words: &str| words.split(',').try_for_each(|word| budget.expect(word));
    expect(&mut budget, "completions=2N+1,failed_completions=1,calls.POST_SEND=N,post_send.RDMA_READ=1")
        .unwrap();
    let change = |r: &mut Report| {
        for pid in [0, 2] {
            (r.completions[pid].produced, r.completions[pid].failed) = (N + 1, 1);
            let read = WorkRequests { opcode: "RDMA_READ".to_owned(), ..r.work_requests[pid].clone() };
            r.work_requests.push(WorkRequests { posted: 1, ..read });
        }
    };
    assert_eq!(unproven(&budget, change), [""; 0]);
    expect(&mut budget, "post_send=7,post_recv=8").unwrap();
    assert_eq!(unproven(&budget, change)[..2], ["post_send: 1001 not 7", "post_recv: 1000 not 8"]);
    for (words, message) in [
        ("post_send", "not KEY=COUNT"),
        ("post_send=x", "no count"),
        ("polls=1", "`polls` is none of"),
        ("post_recv.RECV=N", "`post_recv.RECV` is none of"),
        ("calls.POLLCQ=N", "no operation"),
        ("calls.*=N", "no operation"),
        ("", "not KEY=COUNT"),
    ] {
        let error = expect(&mut budget, words).unwrap_err();
        assert!(error.contains(message), "{words}: {error}");
    }
}

#[test]
fn committed_budgets_tell_the_two_paths_apart() {
    let ci = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci").join(name);
        Budget::read(&path).unwrap()
    };
    let (mapped, ioctl) = (ci("mapped.toml"), ci("ioctl.toml"));
    assert_eq!(judge(&mapped, &report(0, true)).outcome, Outcome::Passed);
    assert_eq!(judge(&mapped, &report(1, true)).outcome, Outcome::Exceeded);
    assert_eq!(judge(&mapped, &report(0, false)).outcome, Outcome::Unproven);
    assert_eq!(judge(&ioctl, &report(4000, false)).outcome, Outcome::Passed);
    assert_eq!(judge(&ioctl, &report(1999, false)).outcome, Outcome::Exceeded);
    assert_eq!(judge(&ioctl, &report(0, true)).outcome, Outcome::Unproven);
}

#[test]
fn the_documented_budget_is_one() {
    let page = include_str!("../../../docs/budget.md");
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(judge(&parse(example).unwrap(), &report(0, true)).outcome, Outcome::Passed);
}

proptest! {
    /// Told by whole numbers, apart from the code under test.
    #[test]
    fn a_report_that_breaches_a_limit_never_passes(
        polls in [0u64..10_000, 0..10_000],
        limits in prop::collection::vec((0usize..3, 0usize..3, 0usize..3, 0u64..12_000), 1..6),
    ) {
        let mut report = report(0, false);
        let own = PIDS.iter().zip(polls).map(|(pid, n)| call(*pid, "POLL_CQ", n));
        report.calls.extend(own);
        let mut text = String::new();
        let mut within = true;
        for (op, per, bound, number) in limits {
            let (op, calls) = [
                ("POLL_CQ", polls),
                ("POST_SEND", [N; 2]),
                ("*", polls.map(|n| n + 2 * N + 150)),
            ][op];
            let (per, by) = [("iteration", N), ("completion", 2 * N), ("run", 1)][per];
            let bound = ["equal", "at_most", "at_least"][bound];
            let number = number + u64::from(bound == "at_least");
            // A thousandth of a call is the finest that is written here.
            text += &limit(op, per, &format!("{bound} = {}.{:03}", number / 1000, number % 1000));
            within &= calls.iter().all(|calls| match bound {
                "equal" => calls * 1000 == number * by,
                "at_most" => calls * 1000 <= number * by,
                _ => calls * 1000 >= number * by,
            });
        }
        let expected = if within { Outcome::Passed } else { Outcome::Exceeded };
        prop_assert_eq!(judge(&budget(&text), &report).outcome, expected);
    }

    #[test]
    fn work_that_differs_is_never_judged(
        pid in 0usize..2, cq in 0usize..2, more in any::<bool>(), by in 1u64..1000, what in 0usize..4
    ) {
        let budget = budget(LIMIT);
        let mut report = report(0, false);
        let change = |n: &mut u64| *n = if more { *n + by } else { *n - by };
        match what {
            0 => change(&mut report.work_requests[2 * pid].posted),
            1 => change(&mut report.work_requests[2 * pid + 1].posted),
            2 => change(&mut report.completions[2 * pid + cq].produced),
            _ => report.completions[2 * pid + cq].failed = by,
        }
        prop_assert_eq!(judge(&budget, &report).outcome, Outcome::Unproven);
    }

    #[test]
    fn no_text_makes_the_parser_fail_otherwise_than_by_saying_so(text in ".{0,200}") {
        let _ = parse(&text);
        let _ = parse(&format!("{HEAD}{text}"));
        let _ = text.parse::<Expression>();
    }
}
