//! The kernel and what it allows.

use std::{fs, path::Path};

use super::{Check, NOT_ALLOWED};
use crate::{
    error::LOCKDOWN_FIX,
    lockdown, obstacles,
    permission::{CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN, Credentials},
    tracer,
};

/// Where tracefs is mounted, the present place and the old one.
const TRACEFS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

pub(super) fn checks(root: &Path) -> Vec<Check> {
    let release = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let vmlinux = root.join("sys/kernel/btf/vmlinux").display().to_string();
    vec![
        Check::ok("kernel", release.trim()),
        Check::needed_by_some("kernel BTF", vmlinux, obstacles::kernel_btf(root)),
        locked(root),
        capabilities(root),
        paranoid(root),
        tracefs(root),
        Check::needed_by_some("ftrace", "kernel.ftrace_enabled is 1", obstacles::ftrace(root)),
        kprobes(root),
    ]
}

fn locked(root: &Path) -> Check {
    const NAME: &str = "lockdown";
    match lockdown::mode(root) {
        Some(mode) if mode == lockdown::CONFIDENTIALITY => {
            Check::missing(NAME, format!("{mode}, which forbids eBPF to read kernel memory"), LOCKDOWN_FIX)
        }
        Some(mode) => Check::ok(NAME, mode),
        None => Check::ok(NAME, "none to be seen (no /sys/kernel/security/lockdown)"),
    }
}

fn capabilities(root: &Path) -> Check {
    const NAME: &str = "capabilities";
    let credentials = Credentials::read(root);
    if let Some(missing) = credentials.missing() {
        return Check::missing(NAME, format!("this process lacks {missing}"), missing.remedy());
    }
    let held: Vec<&str> =
        [(CAP_SYS_ADMIN, "CAP_SYS_ADMIN"), (CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
            .into_iter()
            .filter(|(capability, _)| credentials.has(*capability))
            .map(|(_, name)| name)
            .collect();
    Check::ok(NAME, held.join(", "))
}

fn paranoid(root: &Path) -> Check {
    const NAME: &str = "perf_event_paranoid";
    match obstacles::paranoid(root) {
        None => Check::degraded(
            NAME,
            "this kernel has no perf events, and with them no kprobes",
            "use a kernel built with CONFIG_PERF_EVENTS",
        ),
        Some(level @ 3..) if !Credentials::read(root).has(CAP_SYS_ADMIN) => Check::degraded(
            NAME,
            format!("{level}, which keeps kprobes for CAP_SYS_ADMIN"),
            "sysctl kernel.perf_event_paranoid=2, or run as root",
        ),
        Some(level) => Check::ok(NAME, level.to_string()),
    }
}

/// Nothing here depends on it; who reads this may want to look further by it.
fn tracefs(root: &Path) -> Check {
    let mounted = TRACEFS.into_iter().find(|place| root.join(place).join("trace").exists());
    Check::ok(
        "tracefs",
        mounted.map_or_else(|| "not to be seen, and not needed".to_owned(), |place| format!("/{place}")),
    )
}

fn kprobes(root: &Path) -> Check {
    const NAME: &str = "kprobes";
    if tracer::allowed(root).is_err() {
        return Check::degraded(NAME, "not tried: this process may not trace on this kernel", NOT_ALLOWED);
    }
    Check::needed_by_some(NAME, "one was tried, and fired", obstacles::kprobes(root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn a_locked_kernel_measures_nothing() {
        let root = std::env::temp_dir().join(format!("tbv-doctor-{}", std::process::id()));
        fs::create_dir_all(root.join("sys/kernel/security")).unwrap();
        let status = |text: &str| {
            fs::write(root.join("sys/kernel/security/lockdown"), text).unwrap();
            locked(&root).status
        };
        assert_eq!(status("none integrity [confidentiality]"), Status::Missing);
        assert_eq!(status("none [integrity] confidentiality"), Status::Ok);
        fs::remove_dir_all(&root).unwrap();
    }
}
