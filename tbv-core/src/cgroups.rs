//! Cgroups (version 2): from a path to the id that the kernel gives, and back.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

/// Names of cgroups by id, learnt from the file system.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    paths: HashMap<u64, String>,
}

impl Cgroups {
    /// Learns the cgroups that exist now below `root` (normally `/`). Those that are gone stay known.
    pub fn learn(&mut self, root: &Path) {
        if let Some(mount) = mount_point(root) {
            self.walk(&mount, "/");
        }
    }

    fn walk(&mut self, dir: &Path, path: &str) {
        let Ok(metadata) = fs::metadata(dir) else { return };
        self.paths.insert(metadata.ino(), path.to_owned());
        let Ok(entries) = fs::read_dir(dir) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let name = entry.file_name();
            let path = format!("{}/{}", path.trim_end_matches('/'), name.to_string_lossy());
            self.walk(&entry.path(), &path);
        }
    }

    /// The path of a cgroup, as in /proc/PID/cgroup; `None` if it went before it was learnt.
    pub fn path(&self, id: u64) -> Option<&str> {
        self.paths.get(&id).map(String::as_str)
    }
}

/// Where cgroup v2 is mounted: the first such line of mountinfo.
fn mount_point(root: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let point = text.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
    })?;
    Some(root.join(point.trim_start_matches('/')))
}

/// The id of a cgroup that is named by its folder or by its path in the tree: the inode number of its folder.
pub(crate) fn id_of(root: &Path, cgroup: &Path) -> Result<u64, String> {
    let mount = mount_point(root).ok_or(
        "cgroup version 2 is not mounted; `mount -t cgroup2 none /sys/fs/cgroup` mounts it \
         (cgroups of version 1 cannot be told by eBPF)",
    )?;
    let relative = |part| matches!(part, Component::ParentDir | Component::CurDir);
    if cgroup.as_os_str().is_empty() || cgroup.components().any(relative) {
        return Err(format!(
            "cgroup {:?}: give the folder from / on, or the path as in /proc/PID/cgroup",
            cgroup.display().to_string()
        ));
    }
    let relative = cgroup.strip_prefix(&mount).or_else(|_| cgroup.strip_prefix("/")).unwrap_or(cgroup);
    let dir = mount.join(relative);
    match fs::metadata(&dir) {
        Ok(metadata) if metadata.is_dir() => Ok(metadata.ino()),
        Ok(_) => Err(format!("{} is no cgroup", dir.display())),
        Err(e) => Err(format!("cgroup {}: {}: {e}", cgroup.display(), dir.display())),
    }
}

/// Whether a process is in this cgroup or below it.
pub(crate) fn holds(root: &Path, cgroup: &Path, pid: u32) -> bool {
    let Ok(wanted) = id_of(root, cgroup) else { return false };
    let text = fs::read_to_string(root.join(format!("proc/{pid}/cgroup"))).unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("0::"));
    // Compared by id, as the programs do: the given path may be another name of it.
    own.is_some_and(|own| Path::new(own).ancestors().any(|path| id_of(root, path) == Ok(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tbv-cgroups-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::create_dir_all(root.join("sys/fs/cgroup/a.slice/b")).unwrap();
        root
    }

    #[test]
    fn paths_become_ids_and_ids_become_paths() {
        let root = tree("mounted");
        let line = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        fs::write(root.join("proc/self/mountinfo"), format!("29 1 0:2 / /proc rw - proc proc rw\n{line}"))
            .unwrap();
        let id = id_of(&root, Path::new("/a.slice/b")).unwrap();
        assert_eq!(id_of(&root, &root.join("sys/fs/cgroup/a.slice/b")).unwrap(), id);
        let mut cgroups = Cgroups::default();
        cgroups.learn(&root);
        assert_eq!(cgroups.path(id), Some("/a.slice/b"));
        assert_eq!(cgroups.path(id_of(&root, Path::new("/")).unwrap()), Some("/"));
        fs::remove_dir(root.join("sys/fs/cgroup/a.slice/b")).unwrap();
        cgroups.learn(&root);
        assert_eq!(cgroups.path(id), Some("/a.slice/b"), "one that is gone keeps its name");
        assert!(id_of(&root, Path::new("/a.slice/b")).unwrap_err().contains("No such file"));
        for relative in ["/../b", ".", "./b", ""] {
            assert!(id_of(&root, Path::new(relative)).unwrap_err().contains("from / on"), "{relative}");
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn without_version_2_it_says_so() {
        let root = tree("none");
        fs::write(root.join("proc/self/mountinfo"), "29 1 0:2 / /proc rw - proc proc rw\n").unwrap();
        assert!(id_of(&root, Path::new("/a.slice")).unwrap_err().contains("not mounted"));
        fs::remove_dir_all(&root).unwrap();
    }
}
