//! Kernel modules that cannot be unloaded while we are attached.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use tbv_core::{Hook, Tracer};

const UVERBS: &str = "ib_uverbs";
const DRIVER: &str = "thunderbolt_ibverbs";

/// Modules that `tracer` holds.
pub fn held(tracer: &Tracer) -> Vec<String> {
    held_by(tracer.hook(), tracer.driver_trace_abi().is_some())
}

fn held_by(hook: Hook, driver: bool) -> Vec<String> {
    // A kprobe lets the module go, and is lost with it; the other hooks are not in it.
    let uverbs = (hook == Hook::Fentry).then_some(UVERBS);
    uverbs.into_iter().chain(driver.then_some(DRIVER)).map(str::to_owned).collect()
}

/// Modules that were let go of, as they were loaded then.
pub struct LetGo(Vec<(String, Option<u64>)>);

impl LetGo {
    /// Of these modules, on the machine below `root` (normally `/`).
    pub fn of(root: &Path, modules: Vec<String>) -> Self {
        LetGo(modules.into_iter().map(|name| (name.clone(), loading(root, &name))).collect())
    }

    /// Whether one of them was unloaded and all are there now.
    pub fn are_back(&self, root: &Path) -> bool {
        let now: Vec<Option<u64>> = self.0.iter().map(|(name, _)| loading(root, name)).collect();
        let other = self.0.iter().zip(&now).any(|((_, then), now)| then != now);
        other && now.iter().all(Option::is_some)
    }

    /// What is waited for.
    pub fn words(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        match names[..] {
            [] => "nothing is waited for".to_owned(),
            _ => format!("waits until {} is loaded anew", names.join(" or ")),
        }
    }
}

/// Tells one loading of a module from the next.
fn loading(root: &Path, module: &str) -> Option<u64> {
    fs::metadata(root.join("sys/module").join(module)).ok().map(|folder| folder.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_back_when_it_was_away() {
        let root = std::env::temp_dir().join(format!("tbv-modules-{}", std::process::id()));
        let folder = |name: &str| root.join("sys/module").join(name);
        [UVERBS, DRIVER].iter().for_each(|name| fs::create_dir_all(folder(name)).unwrap());
        let modules = held_by(Hook::Fentry, true);
        assert_eq!(modules, [UVERBS, DRIVER]);
        let let_go = LetGo::of(&root, modules);
        assert!(!let_go.are_back(&root));
        fs::remove_dir(folder(DRIVER)).unwrap();
        assert!(!let_go.are_back(&root));
        // Keeps the number of the old folder from being used again.
        fs::create_dir(folder("other")).unwrap();
        fs::create_dir(folder(DRIVER)).unwrap();
        assert!(let_go.are_back(&root));
        assert!(let_go.words().contains("ib_uverbs or thunderbolt_ibverbs"));
        assert!(!LetGo::of(&root, held_by(Hook::RawSyscall, false)).are_back(&root));
        fs::remove_dir_all(&root).unwrap();
    }
}
