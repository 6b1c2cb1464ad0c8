//! Whether ib_uverbs is there, or could be.

use std::{fmt, fs, path::Path};

use crate::devices;

/// How a module that is not loaded could get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uverbs {
    /// It is loaded.
    Loaded,
    /// Its file is installed.
    Loadable,
    /// The kernel takes modules, and has none of this name.
    NotInstalled(String),
    /// No modules at all are installed here for the running kernel.
    NoModules(String),
    /// The kernel takes no modules.
    Static,
}

const VM: &str = "use a kernel that has it (CONFIG_INFINIBAND_USER_ACCESS), or a virtual machine: \
                  in the source tree, `cargo xtask vm -it -- bash` boots one";

impl Uverbs {
    /// On the machine below `root` (normally `/`).
    pub fn find(root: &Path) -> Self {
        if devices::uverbs_loaded(root) {
            return Uverbs::Loaded;
        }
        if !root.join("proc/modules").exists() {
            return Uverbs::Static;
        }
        let release = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
        let folder = root.join("lib/modules").join(release.trim());
        let shown = folder.display().to_string();
        match fs::read_to_string(folder.join("modules.dep")) {
            Ok(list) if list.lines().any(is_uverbs) => Uverbs::Loadable,
            Ok(_) => Uverbs::NotInstalled(shown),
            Err(_) => Uverbs::NoModules(shown),
        }
    }

    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Uverbs::Loaded => String::new(),
            Uverbs::Loadable => "modprobe ib_uverbs".to_owned(),
            Uverbs::NoModules(_) => format!("in a container, `modprobe ib_uverbs` on its host; else {VM}"),
            Uverbs::NotInstalled(_) | Uverbs::Static => VM.to_owned(),
        }
    }
}

/// What was found, as the end of a sentence about the module.
impl fmt::Display for Uverbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uverbs::Loaded => f.write_str("loaded"),
            Uverbs::Loadable => f.write_str("not loaded"),
            Uverbs::NotInstalled(folder) => write!(f, "not loaded, and this kernel has none ({folder})"),
            Uverbs::NoModules(folder) => {
                write!(f, "not loaded, and no modules are installed here ({folder})")
            }
            Uverbs::Static => f.write_str("not in this kernel, which takes no modules"),
        }
    }
}

/// Whether a line of modules.dep begins with its file, compressed or not.
fn is_uverbs(line: &str) -> bool {
    let file = line.split(':').next().unwrap_or_default();
    file.rsplit('/').next().is_some_and(|name| name.starts_with("ib_uverbs.ko"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modprobe_is_advised_only_where_it_can_work() {
        let root = std::env::temp_dir().join(format!("tbv-modules-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let says = || (Uverbs::find(&root), Uverbs::find(&root).fix());
        write("proc/sys/kernel/osrelease", "6.1.0-x\n");
        let (found, fix) = says();
        assert_eq!(found, Uverbs::Static);
        assert!(!fix.contains("modprobe") && fix.contains("cargo xtask vm"), "{fix}");

        write("proc/modules", "");
        let (found, fix) = says();
        assert!(matches!(found, Uverbs::NoModules(_)) && fix.contains("on its host"), "{fix}");

        write("lib/modules/6.1.0-x/modules.dep", "kernel/a/ib_core.ko: kernel/b/ib_uverbs.ko\n");
        let (found, fix) = says();
        assert!(matches!(found, Uverbs::NotInstalled(_)) && !fix.contains("modprobe"), "{fix}");

        write("lib/modules/6.1.0-x/modules.dep", "kernel/a/ib_uverbs.ko.xz: kernel/b/ib_core.ko.xz\n");
        assert_eq!(says(), (Uverbs::Loadable, "modprobe ib_uverbs".to_owned()));

        fs::create_dir_all(root.join("sys/class/infiniband_verbs")).unwrap();
        assert_eq!(says(), (Uverbs::Loaded, String::new()));
        fs::remove_dir_all(&root).unwrap();
    }
}
