//! What numbers of the kernel are called: devices and cgroups, those that are gone included.

use std::path::Path;

use crate::{
    cgroups::Cgroups,
    devices::{self, Devices},
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

    /// Adds those that exist now. A number that has a new meaning gets its new name.
    pub fn learn(&mut self) {
        let root = Path::new("/");
        self.devices.extend(devices::list(root));
        self.cgroups.learn(root);
    }
}
