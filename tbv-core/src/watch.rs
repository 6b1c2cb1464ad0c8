//! What keeps an attached hook from firing without an error anywhere, and how the hooks rank on this kernel.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use crate::{
    hook::Hook,
    obstacles::{FTRACE_ENABLED, KPROBES_ENABLED, number},
};

/// The switches of a hook, as they were when it was attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    hook: Hook,
    module: Option<u64>,
}

impl Watch {
    /// Before attaching; `obstacles` says whether the hook would fire now.
    pub(crate) fn begin(root: &Path, hook: Hook) -> Self {
        Watch { hook, module: module(root) }
    }

    /// Whether the hook is off now, or hangs on a module that is gone: calls were missed.
    pub(crate) fn is_off(&self, root: &Path) -> bool {
        // The other hooks keep the module from going, or are not in it.
        let orphaned = self.hook == Hook::Kprobe && module(root) != self.module;
        orphaned || switched_off(root, self.hook)
    }
}

/// As far as this process may read it: the second file is root's.
fn switched_off(root: &Path, hook: Hook) -> bool {
    let is_zero = |file: &str| number(root, file) == Some(0);
    (hook != Hook::RawSyscall && is_zero(FTRACE_ENABLED))
        || (hook == Hook::Kprobe && is_zero(KPROBES_ENABLED))
}

/// Tells one loading of ib_uverbs from the next.
fn module(root: &Path) -> Option<u64> {
    fs::metadata(root.join("sys/module/ib_uverbs")).ok().map(|dir| dir.ino())
}

/// The hooks, best first. On a fully preemptible kernel fentry comes last: a thread that is preempted inside such a
/// program keeps it from running for every other thread on that CPU. kprobe is second: calls that are preempted use up
/// the kernel's instances of a kretprobe. Both are counted, but are much.
pub(crate) fn ranked(root: &Path) -> [Hook; 4] {
    if fully_preemptible(root) {
        [Hook::RawSyscall, Hook::Kprobe, Hook::Fentry, Hook::SyscallFentry]
    } else {
        Hook::ALL
    }
}

pub(crate) fn fully_preemptible(root: &Path) -> bool {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let version = read("proc/sys/kernel/version");
    let words = || version.split([' ', ',']);
    if words().any(|word| word == "PREEMPT_DYNAMIC") {
        // The model can change while the kernel runs; the command line is what is readable without debugfs.
        let now = read("sys/kernel/debug/sched/preempt");
        return now.contains("(full)")
            || (now.is_empty()
                && read("proc/cmdline").split_whitespace().any(|word| word == "preempt=full"));
    }
    words().any(|word| matches!(word, "PREEMPT" | "PREEMPT_RT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("tbv-watch-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn hooks_that_do_not_fire_any_more_are_noticed() {
        const FTRACE: &str = FTRACE_ENABLED;
        const KPROBES: &str = KPROBES_ENABLED;
        let root =
            tree("switches", &[(FTRACE, "1\n"), (KPROBES, "1\n"), ("sys/module/ib_uverbs/refcnt", "0")]);
        let watches = Hook::ALL.map(|hook| Watch::begin(&root, hook));
        let off = || watches.map(|watch| watch.is_off(&root));
        assert_eq!(off(), [false; 4]);
        fs::write(root.join(FTRACE), "0\n").unwrap();
        assert_eq!(off(), [true, true, true, false]);
        fs::write(root.join(FTRACE), "1\n").unwrap();
        fs::write(root.join(KPROBES), "0\n").unwrap();
        assert_eq!(off(), [false, true, false, false]);
        fs::write(root.join(KPROBES), "1\n").unwrap();
        fs::remove_dir_all(root.join("sys/module/ib_uverbs")).unwrap();
        assert_eq!(off(), [false, true, false, false]);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn preemption_is_read_from_what_the_kernel_tells() {
        const VERSION: &str = "proc/sys/kernel/version";
        let full = |name: &str, files: &[(&str, &str)]| {
            let root = tree(name, files);
            let full = fully_preemptible(&root);
            fs::remove_dir_all(&root).unwrap();
            full
        };
        let dynamic = (VERSION, "#1 SMP PREEMPT_DYNAMIC Debian 6.12 (2026-01-01)\n");
        let model = "sys/kernel/debug/sched/preempt";
        assert!(!full("a", &[dynamic, (model, "none (voluntary) full\n"), ("proc/cmdline", "preempt=full")]));
        assert!(full("b", &[dynamic, (model, "none voluntary (full)\n")]));
        assert!(full("c", &[dynamic, ("proc/cmdline", "ro preempt=full quiet\n")]));
        assert!(!full("d", &[dynamic, ("proc/cmdline", "ro quiet\n")]));
        assert!(full("e", &[(VERSION, "#1 SMP PREEMPT_RT Debian 6.12\n")]));
        assert!(full("f", &[(VERSION, "#1 SMP PREEMPT Mon Jan 1\n")]));
        assert!(!full("g", &[(VERSION, "#1 SMP Debian 6.1\n")]));
    }
}
