//! What numbers of the kernel are called: devices and cgroups, those that are gone included.

use std::path::Path;

use crate::{
    cgroups::Cgroups,
    devices::{self, Device, Devices},
};

/// Names learnt so far.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// RDMA devices.
    pub devices: Devices,
    /// Cgroups.
    pub cgroups: Cgroups,
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
        for (number, device) in devices::list(root) {
            self.learn_device(number, device);
        }
        self.cgroups.learn(root);
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
