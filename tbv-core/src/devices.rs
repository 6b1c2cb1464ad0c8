//! RDMA devices as sysfs shows them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::{DirEntryExt as _, MetadataExt as _},
    path::Path,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::environment::MODULES;

/// Where the uverbs device files are described.
const CLASS: &str = "sys/class/infiniband_verbs";

/// One uverbs device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Name of the RDMA device, such as `rxe0`.
    pub name: String,
    /// Name of its device file under /dev/infiniband, such as `uverbs0`.
    pub uverbs: String,
    /// Node GUID, four groups of four hex digits.
    pub node_guid: String,
    /// The driver's ABI version (`abi_version` in sysfs); 0 if sysfs does not tell.
    pub abi_version: u32,
    /// Tells one device from the next that gets its number: the inode of its folder in sysfs.
    #[serde(skip)]
    pub identity: u64,
}

/// Devices by the kernel's `dev_t` of their device file (major << 20 | minor).
pub type Devices = BTreeMap<u32, Device>;

/// All devices below `root` (normally `/`).
pub fn list(root: &Path) -> Devices {
    let Ok(entries) = fs::read_dir(root.join(CLASS)) else { return Devices::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let read = |file| Some(fs::read_to_string(entry.path().join(file)).ok()?.trim().to_owned());
            let (major, minor) = read("dev")?.split_once(':').map(|(a, b)| (a.parse(), b.parse()))?;
            let (major, minor): (u32, u32) = (major.ok()?, minor.ok()?);
            let name = read("ibdev")?;
            let guid = root.join("sys/class/infiniband").join(&name).join("node_guid");
            let device = Device {
                uverbs: entry.file_name().into_string().ok()?,
                node_guid: fs::read_to_string(guid).unwrap_or_default().trim().to_owned(),
                abi_version: read("abi_version").and_then(|v| v.parse().ok()).unwrap_or(0),
                name,
                identity: fs::metadata(entry.path()).map_or(0, |folder| folder.ino()),
            };
            Some((major << 20 | minor, device))
        })
        .collect()
}

/// The devices and the modules of a report's environment, by name and inode: what comes, goes or is renamed changes it.
pub(crate) fn listing(root: &Path) -> Vec<(OsString, u64)> {
    let folders = [root.join(CLASS), root.join("sys/class/infiniband")];
    let entries = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut found: Vec<_> = entries.map(|entry| (entry.file_name(), entry.ino())).collect();
    found.sort();
    let module =
        |name: &&str| Some((name.into(), fs::metadata(root.join("sys/module").join(name)).ok()?.ino()));
    found.extend(MODULES.iter().filter_map(module));
    found
}

/// Whether ib_uverbs is there, with or without a device.
pub fn uverbs_loaded(root: &Path) -> bool {
    root.join(CLASS).exists()
}

/// Major numbers of uverbs device files, from `/proc/devices`: at most two, 0 for none.
pub(crate) fn majors(root: &Path) -> [u32; 2] {
    let text = fs::read_to_string(root.join("proc/devices")).unwrap_or_default();
    let mut found = text
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(_, name)| name.trim() == "infiniband_verbs")
        .filter_map(|(major, _)| major.parse().ok());
    [found.next().unwrap_or(0), found.next().unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_devices_and_majors_of_a_recorded_tree() {
        let root = std::env::temp_dir().join(format!("tbv-devices-{}", std::process::id()));
        let class = root.join(CLASS).join("uverbs1");
        fs::create_dir_all(&class).unwrap();
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(class.join("dev"), "231:193\n").unwrap();
        fs::write(class.join("ibdev"), "rxe1\n").unwrap();
        fs::write(class.join("abi_version"), "2\n").unwrap();
        let text = "Character devices:\n  1 mem\n231 infiniband_mad\n231 infiniband_verbs\n";
        fs::write(root.join("proc/devices"), format!("{text}511 infiniband_verbs\n")).unwrap();
        let devices = list(&root);
        let device = &devices[&(231 << 20 | 193)];
        assert_eq!(
            (device.name.as_str(), device.uverbs.as_str(), device.abi_version),
            ("rxe1", "uverbs1", 2)
        );
        assert_eq!(majors(&root), [231, 511]);
        assert!(uverbs_loaded(&root));
        fs::remove_dir_all(&root).unwrap();
        assert!(list(&root).is_empty() && !uverbs_loaded(&root));
    }
}
