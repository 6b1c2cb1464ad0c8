//! What the system looks like beside what the programs count: links, who has ended, what tracing costs.

use std::{collections::BTreeSet, fs, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where RDMA devices are described.
const CLASS: &str = "sys/class/infiniband";

/// The system at the end of the time that is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Processes that were seen to call and whose end was noticed in that time.
    pub ended: Vec<u32>,
    /// RDMA devices that are there.
    pub devices: Vec<String>,
    /// Their ports.
    pub links: Vec<Link>,
    /// What tracing cost in that time; absent if the kernel does not tell.
    pub cost: Option<Cost>,
}

/// A port of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// RDMA device.
    pub device: String,
    /// Number of the port.
    pub port: u32,
    /// State, such as `ACTIVE`.
    pub state: String,
    /// Physical state, such as `LinkUp`.
    pub physical_state: String,
    /// Rate, such as `40 Gb/sec (4X QDR)`.
    pub rate: String,
    /// Payload bytes sent since the device is there; absent if it does not tell.
    pub sent_bytes: Option<u64>,
    /// Payload bytes received.
    pub received_bytes: Option<u64>,
    /// Frames sent again; absent if it does not tell.
    pub retransmits: Option<u64>,
}

/// Time that the processors spent in the eBPF programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Nanoseconds.
    pub run_ns: u64,
    /// How often a program ran.
    pub runs: u64,
}

impl Cost {
    /// What came since an earlier state.
    #[must_use]
    pub(crate) fn since(self, old: Cost) -> Cost {
        Cost { run_ns: self.run_ns.saturating_sub(old.run_ns), runs: self.runs.saturating_sub(old.runs) }
    }
}

impl System {
    /// Devices and ports of the machine below `root` (normally `/`).
    pub(crate) fn read(root: &Path) -> Self {
        let mut devices: Vec<String> = names(&root.join(CLASS));
        devices.sort();
        let links = devices.iter().flat_map(|device| links(root, device)).collect();
        System { ended: Vec::new(), devices, links, cost: None }
    }

    /// Whether a device of this name is there; `None` if the name is that of no single device.
    pub fn is_there(&self, device: &str) -> Option<bool> {
        let known = device != crate::report::UNKNOWN_DEVICE;
        // A number that was used again has the names of all that had it; the last has it now.
        let last = device.rsplit('/').next().unwrap_or(device);
        known.then(|| self.devices.iter().any(|name| name == last))
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn links(root: &Path, device: &str) -> Vec<Link> {
    let ports = root.join(CLASS).join(device).join("ports");
    let mut numbers: Vec<u32> = names(&ports).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let link = |port: u32| {
        let folder = ports.join(port.to_string());
        let line = |file: &str| fs::read_to_string(folder.join(file)).ok().map(|text| text.trim().to_owned());
        // Written as a number and a name: `4: ACTIVE`.
        let state = |file: &str| {
            let text = line(file).unwrap_or_default();
            text.split_once(':').map_or(text.as_str(), |(_, name)| name.trim()).to_owned()
        };
        let number = |file: &str| line(file)?.parse::<u64>().ok();
        // InfiniBand counts data in words of four bytes.
        let words = |file: &str| number(file).and_then(|n| n.checked_mul(4));
        Link {
            device: device.to_owned(),
            port,
            state: state("state"),
            physical_state: state("phys_state"),
            rate: line("rate").unwrap_or_default(),
            sent_bytes: number("hw_counters/data_tx_bytes").or_else(|| words("counters/port_xmit_data")),
            received_bytes: number("hw_counters/data_rx_bytes").or_else(|| words("counters/port_rcv_data")),
            retransmits: number("hw_counters/data_tx_retransmits"),
        }
    };
    numbers.into_iter().map(link).collect()
}

/// Those of `pids` that have ended.
pub(crate) fn ended(root: &Path, pids: &BTreeSet<u32>) -> BTreeSet<u32> {
    let alive = |pid: &u32| root.join("proc").join(pid.to_string()).exists();
    pids.iter().filter(|pid| !alive(pid)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ports_of_a_recorded_tree() {
        let root = std::env::temp_dir().join(format!("tbv-system-{}", std::process::id()));
        let port = |device: &str| root.join(CLASS).join(device).join("ports/1");
        for (device, file, text) in [
            ("usb4_rdma0", "state", "4: ACTIVE\n"),
            ("usb4_rdma0", "phys_state", "5: LinkUp\n"),
            ("usb4_rdma0", "rate", "40 Gb/sec (4X QDR)\n"),
            ("usb4_rdma0", "hw_counters/data_tx_bytes", "1234\n"),
            ("usb4_rdma0", "hw_counters/data_tx_retransmits", "3\n"),
            ("mlx5_0", "counters/port_xmit_data", "100\n"),
        ] {
            let path = port(device).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(root.join("proc/17")).unwrap();
        let system = System::read(&root);
        assert_eq!(system.devices, ["mlx5_0", "usb4_rdma0"]);
        let [other, ours] = &system.links[..] else { panic!("{:?}", system.links) };
        assert_eq!((ours.state.as_str(), ours.physical_state.as_str()), ("ACTIVE", "LinkUp"));
        assert_eq!((ours.sent_bytes, ours.received_bytes, ours.retransmits), (Some(1234), None, Some(3)));
        assert_eq!((other.sent_bytes, other.retransmits), (Some(400), None));
        assert_eq!((system.is_there("old/mlx5_0"), system.is_there("gone")), (Some(true), Some(false)));
        assert_eq!(system.is_there("unknown"), None);
        assert_eq!(ended(&root, &BTreeSet::from([17, 18])), BTreeSet::from([18]));
        fs::remove_dir_all(&root).unwrap();
    }
}
