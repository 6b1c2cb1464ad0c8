//! Judges a guest's kernel log: a test that passes on a broken kernel has not passed.

/// Beginnings of messages that the kernel prints when something is wrong with itself.
const STARTS: [&str; 9] = [
    "WARNING: ", // WARN_ON and lockdep; drivers that warn in words have their name in front
    "BUG: ",
    "Oops: ",
    "Kernel panic - ",
    "general protection fault",
    "kernel BUG at ",
    "UBSAN: ",
    "INFO: trying to register non-static key",
    "unregister_netdevice: waiting for ",
];

/// Parts of such messages that have something else in front.
const PARTS: [&str; 6] = [
    "watchdog: BUG: soft lockup",
    "hard LOCKUP",
    " blocked for more than ", // INFO: task x:1 blocked for more than 120 seconds
    " detected stalls on CPUs",
    " self-detected stall on CPU",
    "memory leaks (see ",
];

/// A warning of the stock kernel that says nothing about our code, and why.
const ALLOWED: [(&str, &str); 1] =
    [("nhi_shutdown", "a stock kernel warns when the Thunderbolt host interface goes during a handshake")];

/// What a log says about the kernel's health.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Lines that tell of trouble.
    pub(crate) trouble: Vec<String>,
    /// Lines that would, but are known and excused, each with the reason.
    pub(crate) excused: Vec<(String, &'static str)>,
}

/// Looks for trouble in a kernel log.
pub(crate) fn scan(log: &str) -> Findings {
    let mut findings = Findings::default();
    for line in log.lines().map(|line| line.trim_end_matches('\r')) {
        let Some(message) = message(line) else { continue };
        let bad = STARTS.iter().any(|start| message.starts_with(start))
            || PARTS.iter().any(|part| message.contains(part));
        if !bad {
            continue;
        }
        let allowed =
            ALLOWED.iter().find(|(part, _)| message.starts_with("WARNING: ") && message.contains(part));
        match allowed {
            Some((_, reason)) => findings.excused.push((line.to_owned(), reason)),
            None => findings.trouble.push(line.to_owned()),
        }
    }
    findings
}

/// The text behind `[    1.234567] `, and behind `[   T123] ` where the kernel names the caller.
fn message(line: &str) -> Option<&str> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once("] ")?;
    stamp.trim_start().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then_some(())?;
    let Some((caller, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
        return Some(rest);
    };
    let is_caller = caller.trim_start().strip_prefix(['T', 'C']);
    let is_caller = is_caller.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    Some(if is_caller { after } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_found() {
        for message in [
            "WARNING: CPU: 0 PID: 1 at kernel/x.c:3 f+0x1/0x2 [m]",
            "WARNING: possible circular locking dependency detected",
            "WARNING: suspicious RCU usage",
            "BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "BUG: KASAN: slab-use-after-free in f+0x1/0x2",
            "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] PREEMPT SMP",
            "Kernel panic - not syncing: Fatal exception",
            "kernel BUG at mm/slub.c:1!",
            "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:1]",
            "INFO: task rmmod:300 blocked for more than 120 seconds.",
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
        ] {
            for line in [format!("[   12.345678] {message}\r"), format!("[   12.345678] [  T123] {message}")]
            {
                assert_eq!(scan(&line).trouble, [line.trim_end_matches('\r')], "{message}");
            }
        }
    }

    #[test]
    fn a_normal_boot_is_not_trouble() {
        let log = "[    0.000000] Linux version 6.12\n[    0.1] RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable\n\
                   guest: WARNING: not a kernel line\n[    1.0] foo: BUG: not at the start, a driver's own words\n\
                   WARNING: CPU\n[    2.0] [drm] WARNING: words\n";
        assert_eq!(scan(log), Findings::default());
    }

    #[test]
    fn known_warning_is_excused_with_a_reason() {
        let warning =
            "[ 9.0] WARNING: CPU: 0 PID: 9 at drivers/thunderbolt/nhi.c:1 nhi_shutdown+0x1/0x2 [thunderbolt]";
        let findings = scan(&format!("{warning}\n[ 9.1] BUG: bad nhi_shutdown\n"));
        assert_eq!(findings.excused[0].0, warning);
        assert_eq!(findings.trouble, ["[ 9.1] BUG: bad nhi_shutdown"]);
    }
}
