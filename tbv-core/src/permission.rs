//! Which capabilities this process holds (`linux/capability.h`), and how it could get those that it lacks.

use std::{fmt, fs, path::Path};

/// Administration at large; stands for the two below on kernels that know them.
pub const CAP_SYS_ADMIN: u32 = 21;
/// Reading kernel memory and attaching probes.
pub const CAP_PERFMON: u32 = 38;
/// Loading eBPF programs.
pub const CAP_BPF: u32 = 39;

/// What tracing needs at least: the capability, its name, and what for.
const NEEDED: [(u32, &str, &str); 2] = [
    (CAP_BPF, "CAP_BPF", "to load eBPF programs"),
    (CAP_PERFMON, "CAP_PERFMON", "to attach them and to read kernel memory"),
];

/// Whether the effective set holds `capability`.
pub fn has(capability: u32) -> bool {
    Credentials::read(Path::new("/")).has(capability)
}

/// What the kernel judges this process by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Effective user id.
    pub uid: u32,
    effective: u64,
    /// What this process and its children can have at most.
    bounding: u64,
    no_new_privs: bool,
    /// Capabilities of another user namespace than the first mean nothing to bpf(2).
    initial_namespace: bool,
}

impl Credentials {
    /// Of the calling process, below `root` (normally `/`). What cannot be read counts as not held.
    pub fn read(root: &Path) -> Self {
        let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
        let map = fs::read_to_string(root.join("proc/self/uid_map")).unwrap_or_default();
        Self::parse(&status, &map)
    }

    fn parse(status: &str, uid_map: &str) -> Self {
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let set = |name| line(name).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let uid = line("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        // All ids, each mapped to itself.
        let whole: Vec<&str> = uid_map.split_whitespace().collect();
        Credentials {
            uid: uid.unwrap_or(u32::MAX),
            effective: set("CapEff:"),
            bounding: set("CapBnd:"),
            no_new_privs: line("NoNewPrivs:") == Some("1"),
            initial_namespace: whole.is_empty() || whole == ["0", "0", "4294967295"],
        }
    }

    /// Whether the kernel grants what `capability` stands for.
    pub fn has(&self, capability: u32) -> bool {
        self.initial_namespace && self.effective >> capability & 1 == 1
    }

    fn can_get(&self, capability: u32) -> bool {
        [capability, CAP_SYS_ADMIN].iter().any(|c| self.bounding >> c & 1 == 1)
    }

    /// What is missing for tracing, if anything.
    pub fn missing(&self) -> Option<Missing> {
        if self.has(CAP_SYS_ADMIN) {
            return None;
        }
        let lacks: Vec<_> = NEEDED.into_iter().filter(|(capability, ..)| !self.has(*capability)).collect();
        if lacks.is_empty() {
            return None;
        }
        let remedy = if !self.initial_namespace {
            Remedy::LeaveUserNamespace
        } else if lacks.iter().any(|(capability, ..)| !self.can_get(*capability)) {
            Remedy::WidenBoundingSet
        } else if self.no_new_privs {
            Remedy::LeaveSandbox
        } else {
            Remedy::Gain
        };
        Some(Missing { what: lacks.into_iter().map(|(_, name, why)| (name, why)).collect(), remedy })
    }
}

/// How a process gets capabilities that it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// As root, or by capabilities of the file.
    Gain,
    /// No way to gain any: no_new_privs is set.
    LeaveSandbox,
    /// The bounding set does not have them, not even for root.
    WidenBoundingSet,
    /// They would not count.
    LeaveUserNamespace,
}

impl Remedy {
    const fn text(self) -> &'static str {
        match self {
            Remedy::Gain => {
                "Run it as root (`sudo tbv-trace ...`), or give the program what it needs once: \
                 `sudo setcap cap_bpf,cap_perfmon+ep /path/to/tbv-trace` \
                 (cap_sys_admin besides gives the cheapest hook)"
            }
            Remedy::LeaveSandbox => {
                "This process may gain none, not even by sudo (no_new_privs, as sandboxes set it): \
                 start tbv-trace outside of the sandbox"
            }
            Remedy::WidenBoundingSet => {
                "They are outside of this process's bounding set, so that root does not have them either: start \
                 the container with them (`docker run --cap-add BPF --cap-add PERFMON`, or the like for a \
                 service), or tbv-trace outside of it"
            }
            Remedy::LeaveUserNamespace => {
                "Root of a user namespace, as in a rootless container, is not the kernel's root: \
                 start tbv-trace outside of it"
            }
        }
    }
}

/// Capabilities that are missing, what each is for, and how to get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    what: Vec<(&'static str, &'static str)>,
    remedy: Remedy,
}

impl Missing {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        self.remedy.text()
    }
}

/// `CAP_BPF (to load ...) and CAP_PERFMON (to ...)`.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (name, why)) in self.what.iter().enumerate() {
            let and = if n > 0 { " and " } else { "" };
            write!(f, "{and}{name} ({why})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "         0          0 4294967295\n";
    const BOTH: u64 = 1 << CAP_BPF | 1 << CAP_PERFMON;

    fn of(uid: u32, effective: u64, bounding: u64, no_new_privs: u8, map: &str) -> Credentials {
        let status = format!(
            "Name:\tx\nUid:\t7\t{uid}\t7\t7\nCapPrm:\t0\nCapEff:\t{effective:016x}\nCapBnd:\t{bounding:016x}\n\
             NoNewPrivs:\t{no_new_privs}\n"
        );
        Credentials::parse(&status, map)
    }

    #[test]
    fn names_what_is_missing_and_no_more() {
        let text = |effective| of(5, effective, u64::MAX, 0, ALL).missing().map(|m| m.to_string());
        assert_eq!(text(BOTH), None);
        assert_eq!(text(1 << CAP_SYS_ADMIN), None);
        let (bpf, perfmon) = (text(1 << CAP_PERFMON).unwrap(), text(1 << CAP_BPF).unwrap());
        assert!(bpf.contains("CAP_BPF (") && !bpf.contains("CAP_PERFMON"), "{bpf}");
        assert!(perfmon.contains("CAP_PERFMON (") && !perfmon.contains("CAP_BPF"), "{perfmon}");
        assert_eq!(text(0).unwrap(), format!("{bpf} and {perfmon}"));
    }

    #[test]
    fn the_remedy_fits_the_process() {
        let remedy = |credentials: Credentials| credentials.missing().map(|m| m.remedy);
        assert_eq!(remedy(of(5, 0, u64::MAX, 0, ALL)), Some(Remedy::Gain));
        assert_eq!(remedy(of(5, 0, u64::MAX, 1, ALL)), Some(Remedy::LeaveSandbox));
        assert_eq!(remedy(of(0, 0, 1 << CAP_BPF, 0, ALL)), Some(Remedy::WidenBoundingSet));
        assert_eq!(remedy(of(0, u64::MAX, u64::MAX, 0, "0 1000 1\n")), Some(Remedy::LeaveUserNamespace));
        assert_eq!(remedy(of(0, u64::MAX, u64::MAX, 1, ALL)), None);
    }

    #[test]
    fn an_unreadable_status_holds_nothing() {
        let credentials = Credentials::read(Path::new("/no/such/root"));
        assert!(!credentials.has(CAP_BPF) && credentials.missing().is_some());
    }
}
