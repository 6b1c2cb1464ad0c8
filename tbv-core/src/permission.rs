//! Which capabilities this process holds (`linux/capability.h`).

use std::fs;

/// Administration at large; stands for the two below on kernels that know them.
pub const CAP_SYS_ADMIN: u32 = 21;
/// Reading kernel memory and attaching probes.
pub const CAP_PERFMON: u32 = 38;
/// Loading eBPF programs.
pub const CAP_BPF: u32 = 39;

/// Whether the effective set holds `capability`.
pub fn has(capability: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective(&status).is_some_and(|set| set >> capability & 1 == 1)
}

fn effective(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// The capabilities that are needed at least and missing, by name; empty if none.
pub fn missing() -> Vec<&'static str> {
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(capability, _)| !has(*capability))
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_effective_set() {
        assert_eq!(effective("CapPrm:\t0\nCapEff:\t000000c000200000\n"), Some(0xc0_0020_0000));
        assert_eq!(effective("CapPrm:\t0\n"), None);
    }
}
