//! What keeps a hook from working that is known without attaching it, or that attaching it would not tell: the
//! one place that knows what a hook needs of the kernel and of this process.

use std::{fs, path::Path};

use crate::{
    btf::BTF_DIR,
    hook::Hook,
    kprobe_test::{self, Broken},
    permission::{CAP_SYS_ADMIN, Credentials},
};

/// Why something cannot work, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(crate) reason: String,
    pub(crate) fix: String,
}

impl Obstacle {
    fn new(reason: impl Into<String>, fix: impl Into<String>) -> Self {
        Obstacle { reason: reason.into(), fix: fix.into() }
    }
}

/// Whether the function tracer works.
pub(crate) const FTRACE_ENABLED: &str = "proc/sys/kernel/ftrace_enabled";
/// Whether kprobes fire; root's to read.
pub(crate) const KPROBES_ENABLED: &str = "sys/kernel/debug/kprobes/enabled";
const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";

/// What keeps `hook` from working on the machine below `root` (normally `/`); `Ok` if nothing is known.
pub(crate) fn check(hook: Hook, root: &Path) -> Result<(), Obstacle> {
    match hook {
        Hook::Fentry => module_btf(root).and_then(|()| ftrace(root)),
        Hook::Kprobe => kprobes(root),
        Hook::SyscallFentry => kernel_btf(root).and_then(|()| ftrace(root)),
        Hook::RawSyscall => kernel_btf(root),
    }
}

/// The number in a file of one line.
pub(crate) fn number(root: &Path, file: &str) -> Option<i64> {
    fs::read_to_string(root.join(file)).ok()?.trim().parse().ok()
}

/// `kernel.perf_event_paranoid`.
pub(crate) fn paranoid(root: &Path) -> Option<i64> {
    number(root, PARANOID)
}

fn btf_shown(root: &Path, file: &str) -> bool {
    root.join(BTF_DIR.trim_start_matches('/')).join(file).exists()
}

/// The kernel's own types.
pub(crate) fn kernel_btf(root: &Path) -> Result<(), Obstacle> {
    if btf_shown(root, "vmlinux") {
        return Ok(());
    }
    Err(Obstacle::new(
        format!("this kernel shows no BTF ({BTF_DIR}/vmlinux)"),
        "use a kernel built with CONFIG_DEBUG_INFO_BTF; without it devices show as unknown",
    ))
}

fn module_btf(root: &Path) -> Result<(), Obstacle> {
    kernel_btf(root)?;
    if root.join("sys/module/ib_uverbs").exists() && !btf_shown(root, "ib_uverbs") {
        return Err(Obstacle::new(
            format!("this kernel shows no BTF of ib_uverbs ({BTF_DIR}/ib_uverbs)"),
            "use a kernel built with CONFIG_DEBUG_INFO_BTF_MODULES",
        ));
    }
    if Credentials::read(root).has(CAP_SYS_ADMIN) {
        return Ok(());
    }
    let reason = "CAP_SYS_ADMIN is missing, which the types (BTF) of a module take";
    Err(Obstacle::new(reason, "run as root, or add cap_sys_admin by setcap"))
}

/// fentry, and kprobes at the begin of a function, hang on the function tracer. With it switched off they attach
/// and never fire; worse, Linux 6.12 forgets to clear up behind them, and warns and gives the function tracer up
/// for good when the next one is detached. So nothing is attached then, not even to try.
fn ftrace_on(root: &Path) -> Result<(), Obstacle> {
    if number(root, FTRACE_ENABLED) != Some(0) {
        return Ok(());
    }
    Err(Obstacle::new(
        "the function tracer is switched off (kernel.ftrace_enabled is 0), without which it never fires",
        "sysctl kernel.ftrace_enabled=1",
    ))
}

/// The function tracer, there and switched on.
pub(crate) fn ftrace(root: &Path) -> Result<(), Obstacle> {
    ftrace_on(root)?;
    if number(root, FTRACE_ENABLED).is_some() {
        return Ok(());
    }
    Err(Obstacle::new(
        "this kernel has no function tracer (kernel.ftrace_enabled), or gave it up after a fault",
        "use a kernel built with CONFIG_DYNAMIC_FTRACE; if this one is, see its log, and boot again",
    ))
}

/// kprobes, by trying one.
pub(crate) fn kprobes(root: &Path) -> Result<(), Obstacle> {
    ftrace_on(root)?;
    match kprobe_test::try_one(root) {
        Ok(()) => Ok(()),
        Err(Broken::Absent) => Err(Obstacle::new(
            "this kernel has no kprobes (/sys/bus/event_source/devices/kprobe)",
            "use a kernel built with CONFIG_KPROBE_EVENTS",
        )),
        // Only root can read this file; but that kprobes do not fire was seen.
        Err(Broken::Silent) => Err(Obstacle::new(
            format!("kprobes are switched off (/{KPROBES_ENABLED}): they attach and never fire"),
            format!("echo 1 > /{KPROBES_ENABLED}"),
        )),
        Err(Broken::Refused(e)) => match paranoid(root) {
            Some(level @ 3..) if !Credentials::read(root).has(CAP_SYS_ADMIN) => Err(Obstacle::new(
                format!("kernel.perf_event_paranoid is {level}, which keeps kprobes for CAP_SYS_ADMIN ({e})"),
                "sysctl kernel.perf_event_paranoid=2, or run as root",
            )),
            _ => Err(Obstacle::new(
                format!("the kernel refuses kprobes: perf_event_open: {e}"),
                "run as root, outside of containers",
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hook_names_what_it_lacks() {
        let root = std::env::temp_dir().join(format!("tbv-obstacles-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let reason = |hook| check(hook, &root).map_err(|o| o.reason).err().unwrap_or_default();
        for hook in [Hook::Fentry, Hook::SyscallFentry, Hook::RawSyscall] {
            assert!(reason(hook).contains("no BTF (/sys/kernel/btf/vmlinux)"), "{hook}: {}", reason(hook));
        }
        assert!(reason(Hook::Kprobe).contains("no kprobes"));

        write("sys/kernel/btf/vmlinux", "");
        write("sys/module/ib_uverbs/refcnt", "0");
        assert!(reason(Hook::Fentry).contains("BTF of ib_uverbs"));
        assert!(reason(Hook::SyscallFentry).contains("no function tracer"));
        assert_eq!(check(Hook::RawSyscall, &root), Ok(()));

        write("sys/kernel/btf/ib_uverbs", "");
        assert!(reason(Hook::Fentry).contains("CAP_SYS_ADMIN"));
        write("proc/self/status", "CapEff:\tffffffffffffffff\n");
        write(FTRACE_ENABLED, "0\n");
        for hook in [Hook::Fentry, Hook::SyscallFentry] {
            assert!(reason(hook).contains("kernel.ftrace_enabled is 0"), "{hook}: {}", reason(hook));
        }
        write(FTRACE_ENABLED, "1\n");
        assert_eq!(check(Hook::Fentry, &root), Ok(()));
        assert_eq!(check(Hook::SyscallFentry, &root), Ok(()));
        fs::remove_dir_all(&root).unwrap();
    }
}
