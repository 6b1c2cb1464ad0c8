//! What numbers of the kernel are called: devices and cgroups, those that are gone included.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    cgroups::Cgroups,
    devices::{self, Device, Devices},
    driver,
    snapshot::Snapshot,
};

/// How often all cgroups are learnt, also those that nobody has called in yet: they may be gone when somebody has.
const LEARN_CGROUPS_EVERY: Duration = Duration::from_secs(1);

/// Names learnt so far.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// RDMA devices.
    pub devices: Devices,
    /// Cgroups.
    pub cgroups: Cgroups,
    /// What sysfs listed when devices were last learnt.
    listed: Vec<(OsString, u64)>,
    /// Whether that had just changed: a device may have been half there.
    listed_lately: bool,
    /// When cgroups were learnt.
    cgroups_learnt: Option<Instant>,
    /// Those that were looked for since, and not found.
    looked_for: BTreeSet<u64>,
}

impl Names {
    /// Those that exist now.
    pub fn now() -> Self {
        let mut names = Names::default();
        names.learn();
        names
    }

    /// Adds those that exist now.
    pub fn learn(&mut self) {
        let root = Path::new("/");
        (self.listed, self.listed_lately) = (devices::listing(root), true);
        self.learn_devices(root);
        self.learn_cgroups(root);
    }

    fn learn_cgroups(&mut self, root: &Path) {
        self.cgroups.learn(root);
        self.cgroups_learnt = Some(Instant::now());
    }

    /// Adds those that exist now below `root`, as far as there is reason to look: for whoever asks often. Whether devices
    /// may have changed.
    pub(crate) fn keep_up(&mut self, root: &Path, snapshot: &Snapshot) -> bool {
        let listed = devices::listing(root);
        let changed = listed != self.listed;
        let look = changed || self.listed_lately;
        (self.listed, self.listed_lately) = (listed, changed);
        if look {
            self.learn_devices(root);
        }
        if self.cgroups_learnt.is_none_or(|at| at.elapsed() >= LEARN_CGROUPS_EVERY) {
            self.looked_for.clear();
            self.learn_cgroups(root);
        }
        let ids = snapshot.processes.values().map(|process| process.cgroup);
        let unknown = ids.filter(|id| self.cgroups.path(*id).is_none());
        let wanted: BTreeSet<u64> = unknown.filter(|id| !self.looked_for.contains(id)).collect();
        if !wanted.is_empty() {
            self.looked_for.extend(wanted);
            self.learn_cgroups(root);
        }
        look
    }

    fn learn_devices(&mut self, root: &Path) {
        for (number, device) in devices::list(root) {
            self.learn_device(number, device);
        }
    }

    /// What our own driver calls the devices of these names, for what the kernel side does not filter by; it stays so
    /// when they are renamed, or go and come again.
    pub fn only(&self, devices: &[String]) -> OnlyDevices {
        let named = self.devices.values().filter(|device| devices.contains(&device.name));
        let indexes = named.filter_map(|device| driver::device_index(&device.node_guid));
        OnlyDevices((!devices.is_empty()).then(|| indexes.collect()))
    }

    /// A device that was renamed has its new name. A number that now means another device has both names: calls
    /// are told apart by it alone.
    fn learn_device(&mut self, number: u32, mut device: Device) {
        if let Some(old) = self.devices.get(&number)
            && (old.identity != device.identity || old.name.contains('/'))
        {
            let mut names: Vec<&str> = old.name.split('/').collect();
            if !names.contains(&device.name.as_str()) {
                names.push(&device.name);
            }
            device.name = names.join("/");
        }
        self.devices.insert(number, device);
    }
}

/// Devices that count, by our own driver's indexes; any, if there are none.
#[derive(Clone, Debug, Default)]
pub struct OnlyDevices(Option<BTreeSet<u32>>);

impl OnlyDevices {
    /// Whether the device of this index counts.
    pub fn has(&self, index: u32) -> bool {
        self.0.as_ref().is_none_or(|only| only.contains(&index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_counts_by_its_index_whatever_it_is_called_later() {
        let device = |name: &str, node_guid: &str| Device {
            name: name.to_owned(),
            uverbs: String::new(),
            node_guid: node_guid.to_owned(),
            abi_version: 1,
            identity: 0,
        };
        let ours = |name: &str, index: u32| device(name, &format!("0200:5442:5600:00{index:02x}"));
        let mut names = Names::default();
        names.devices.extend([
            (1, ours("a", 3)),
            (2, ours("b", 4)),
            (3, device("rxe0", "0011:2233:4455:6677")),
        ]);
        let only = names.only(&["a".to_owned()]);
        names.learn_device(1, ours("c", 3));
        assert!(only.has(3) && !only.has(4));
        assert!(names.only(&[]).has(4));
        assert!(!names.only(&["rxe0".to_owned()]).has(3));
    }

    #[test]
    fn a_number_used_again_has_both_names_and_a_renamed_device_its_last() {
        let device = |name: &str, identity| Device {
            name: name.to_owned(),
            uverbs: "uverbs0".to_owned(),
            node_guid: String::new(),
            abi_version: 1,
            identity,
        };
        let mut names = Names::default();
        let learn = |names: &mut Names, name, identity| {
            names.learn_device(7, device(name, identity));
            names.devices[&7].name.clone()
        };
        assert_eq!(learn(&mut names, "aaa", 1), "aaa");
        assert_eq!(learn(&mut names, "aab", 1), "aab");
        assert_eq!(learn(&mut names, "bbb", 2), "aab/bbb");
        assert_eq!(learn(&mut names, "bbb", 2), "aab/bbb");
        assert_eq!(learn(&mut names, "aab", 3), "aab/bbb");
    }

    #[test]
    fn what_comes_or_is_renamed_is_learnt_and_nothing_else_is_read_again() {
        let root = std::env::temp_dir().join(format!("tbv-names-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let device = |name: &str| {
            write("sys/class/infiniband_verbs/uverbs0/dev", "231:192\n");
            write("sys/class/infiniband_verbs/uverbs0/ibdev", name);
            std::fs::create_dir_all(root.join("sys/class/infiniband").join(name)).unwrap();
        };
        let (mut names, nobody) = (Names::default(), Snapshot::default());
        let name =
            |names: &Names| names.devices.values().map(|device| device.name.clone()).collect::<Vec<_>>();
        assert!(!names.keep_up(&root, &nobody) && names.devices.is_empty());
        device("rxe0");
        // Once more, in case that it was half there.
        assert_eq!([(); 3].map(|()| names.keep_up(&root, &nobody)), [true, true, false]);
        assert_eq!(name(&names), ["rxe0"]);
        std::fs::remove_dir_all(root.join("sys/class/infiniband/rxe0")).unwrap();
        device("rxe1");
        assert!(names.keep_up(&root, &nobody));
        assert_eq!(name(&names), ["rxe1"]);
        std::fs::remove_dir_all(root.join("sys")).unwrap();
        // One that is gone stays known.
        assert!(names.keep_up(&root, &nobody));
        assert_eq!(name(&names), ["rxe1"]);

        let folder = root.join("cgroups/inner");
        std::fs::create_dir_all(&folder).unwrap();
        write("proc/self/mountinfo", "25 30 0:23 / /cgroups rw - cgroup2 cgroup2 rw\n");
        let id = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&folder).unwrap());
        let process = |cgroup| tbv_common::Process { pid: 1, ns_pid: 1, cgroup, comm: [0; 16] };
        let snapshot = Snapshot { processes: [(0, process(id)), (1, process(u64::MAX))].into(), ..nobody };
        names.keep_up(&root, &snapshot);
        assert_eq!((names.cgroups.path(id), names.cgroups.path(u64::MAX)), (Some("/inner"), None));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
