//! The kernel's lockdown mode, see kernel_lockdown(7).

use std::{fs, path::Path};

/// The mode that forbids eBPF to read kernel memory.
pub const CONFIDENTIALITY: &str = "confidentiality";

/// The mode in force: `none`, `integrity` or `confidentiality`. `None` if the kernel doesn't show it: it has no
/// lockdown, or securityfs is not mounted.
pub fn mode(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("sys/kernel/security/lockdown")).ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Whether the verifier refused a program for a reason that lockdown gives: it takes the helpers away that read
/// kernel memory, and names one of them.
pub(crate) fn explains(refusal: &str) -> bool {
    let lines = || refusal.lines();
    let says = |what: &str| lines().any(|line| line.contains(what) && line.contains("bpf_probe_read"));
    says("cannot use helper") || says("unknown func")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_the_word_in_brackets() {
        let root = std::env::temp_dir().join(format!("tbv-lockdown-{}", std::process::id()));
        let file = root.join("sys/kernel/security/lockdown");
        assert_eq!(mode(&root), None);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "none [integrity] confidentiality\n").unwrap();
        assert_eq!(mode(&root).as_deref(), Some("integrity"));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn only_refused_reads_are_explained() {
        assert!(explains("x\nprogram of this type cannot use helper bpf_probe_read_kernel#113\n"));
        assert!(explains("unknown func bpf_probe_read_kernel#113"));
        assert!(!explains("call bpf_probe_read_kernel#113\nR1 invalid mem access 'scalar'"));
    }
}
