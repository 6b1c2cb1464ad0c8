//! ib_uverbs, the drivers on top of it, and their devices.

use std::{fs, path::Path};

use super::Check;
use crate::{devices, driver, modules::Uverbs};

/// Uses ib_uverbs too, and is no driver.
const CONNECTION_MANAGER: &str = "rdma_ucm";
const SOFTWARE: &str = "load that of your hardware, or a software one: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV";

pub(super) fn checks(root: &Path) -> Vec<Check> {
    let uverbs = Uverbs::find(root);
    if uverbs != Uverbs::Loaded {
        return vec![Check::missing("ib_uverbs", uverbs.to_string(), uverbs.fix())];
    }
    let mut checks = vec![Check::ok("ib_uverbs", uverbs.to_string()), btf(root), drivers(root)];
    checks.extend(tracepoints(root));
    checks.push(devices(root));
    checks
}

fn btf(root: &Path) -> Check {
    let file = root.join("sys/kernel/btf/ib_uverbs");
    if file.exists() {
        return Check::ok("ib_uverbs BTF", file.display().to_string());
    }
    Check::degraded(
        "ib_uverbs BTF",
        format!("no {}", file.display()),
        "use a kernel built with CONFIG_DEBUG_INFO_BTF_MODULES; the cheapest hook needs it",
    )
}

fn drivers(root: &Path) -> Check {
    let holders = fs::read_dir(root.join("sys/module/ib_uverbs/holders"));
    let mut names: Vec<String> = holders
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != CONNECTION_MANAGER)
        .collect();
    names.sort();
    if names.is_empty() {
        return Check::degraded("driver", "no module that uses ib_uverbs is loaded", SOFTWARE);
    }
    Check::ok("driver", names.join(", "))
}

/// Those of our own driver, from which completions are counted, if it is loaded.
fn tracepoints(root: &Path) -> Option<Check> {
    const NAME: &str = "driver tracepoints";
    let abi = driver::trace_abi(root)?;
    if abi == driver::TRACE_ABI {
        return Some(Check::ok(NAME, format!("ABI {abi}")));
    }
    let found =
        format!("ABI {abi}, and this tbv-trace knows {}: completions are not counted", driver::TRACE_ABI);
    Some(Check::degraded(NAME, found, "use driver and tbv-trace of one version"))
}

fn devices(root: &Path) -> Check {
    let devices = devices::list(root);
    if devices.is_empty() {
        return Check::degraded("devices", "none, so that no program can call it yet", SOFTWARE);
    }
    let names: Vec<String> = devices.values().map(|d| format!("{} ({})", d.name, d.uverbs)).collect();
    Check::ok("devices", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn a_recorded_tree_is_judged() {
        let root = std::env::temp_dir().join(format!("tbv-doctor-rdma-{}", std::process::id()));
        let statuses =
            || -> Vec<(&str, Status)> { checks(&root).iter().map(|c| (c.name, c.status)).collect() };
        assert_eq!(statuses(), [("ib_uverbs", Status::Missing)]);

        fs::create_dir_all(root.join("sys/class/infiniband_verbs")).unwrap();
        fs::create_dir_all(root.join("sys/module/ib_uverbs/holders").join(CONNECTION_MANAGER)).unwrap();
        let bare = [("ib_uverbs", Status::Ok), ("ib_uverbs BTF", Status::Degraded)];
        assert_eq!(statuses()[..2], bare);
        assert_eq!(statuses()[2..], [("driver", Status::Degraded), ("devices", Status::Degraded)]);

        fs::create_dir_all(root.join("sys/module/ib_uverbs/holders/rdma_rxe")).unwrap();
        let parameters = root.join("sys/module/thunderbolt_ibverbs/parameters");
        fs::create_dir_all(&parameters).unwrap();
        fs::write(parameters.join("trace_abi"), "77\n").unwrap();
        assert_eq!(checks(&root)[2], Check::ok("driver", "rdma_rxe"));
        assert_eq!(statuses()[3], ("driver tracepoints", Status::Degraded));
        fs::write(parameters.join("trace_abi"), format!("{}\n", driver::TRACE_ABI)).unwrap();
        assert_eq!(statuses()[3], ("driver tracepoints", Status::Ok));
        fs::remove_dir_all(&root).unwrap();
    }
}
