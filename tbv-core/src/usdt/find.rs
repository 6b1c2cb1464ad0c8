//! Where the provider's library is: mapped by processes that run, or where libibverbs would look for it.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

/// How the file's name begins and ends; between is the private ABI of libibverbs.
const NAME: (&str, &str) = ("libusb4_rdma-rdmav", ".so");
/// Its name in the folder of a build, where the other one is a link to it.
const BUILT: &str = "libusb4_rdma.so";
/// Folders of providers, as distributions choose them.
const FOLDERS: [&str; 6] = [
    "usr/lib/x86_64-linux-gnu/libibverbs",
    "usr/lib64/libibverbs",
    "usr/lib/libibverbs",
    "usr/local/lib/x86_64-linux-gnu/libibverbs",
    "usr/local/lib64/libibverbs",
    "usr/local/lib/libibverbs",
];
/// Folder of files that name providers to libibverbs.
const CONFIGURATION: &str = "etc/libibverbs.d";
/// Variables that do the same, with colons or semicolons between the names.
const VARIABLES: [&str; 2] = ["IBV_DRIVERS", "RDMAV_DRIVERS"];

/// The provider's library: those that the processes `pids` have mapped, or, if none is named, those that libibverbs
/// would load. Each file once. An error says what to do if there is none.
pub fn find(pids: &[u32]) -> Result<Vec<PathBuf>> {
    let root = Path::new("/");
    if pids.is_empty() {
        let installed = installed(root, &variables());
        return some(installed, || {
            "not in the folders that libibverbs looks in, nor named by IBV_DRIVERS: name the file".to_owned()
        });
    }
    some(pids.iter().flat_map(|pid| mapped(root, *pid)).collect(), || {
        format!("not mapped by {pids:?}: name a process that has opened a device of ours, or the file")
    })
}

/// The provider's library: those that any process has mapped, and those that libibverbs would load.
pub fn find_anywhere() -> Result<Vec<PathBuf>> {
    let root = Path::new("/");
    let mut found = installed(root, &variables());
    found.extend(processes(root).iter().flat_map(|pid| mapped(root, *pid)));
    some(found, || {
        "not mapped by any process, not in the folders that libibverbs looks in, nor named by IBV_DRIVERS: name the file"
            .to_owned()
    })
}

fn variables() -> Vec<OsString> {
    VARIABLES.iter().filter_map(env::var_os).collect()
}

/// Each file once, or why there is none.
fn some(found: Vec<PathBuf>, none: impl FnOnce() -> String) -> Result<Vec<PathBuf>> {
    let found = distinct(found);
    if !found.is_empty() {
        return Ok(found);
    }
    let (prefix, suffix) = NAME;
    Err(Error::Usdt { path: format!("{prefix}*{suffix}"), reason: none() })
}

/// Ids of all processes.
fn processes(root: &Path) -> Vec<u32> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(NAME.0) && name.ends_with(NAME.1)
}

/// What a process has mapped, by paths that also work if it lives in a mount namespace of its own.
fn mapped(root: &Path, pid: u32) -> Vec<PathBuf> {
    let process = root.join("proc").join(pid.to_string());
    let maps = fs::read(process.join("maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let paths = maps.lines().filter_map(|line| line.split_once('/').map(|(_, path)| path));
    // A file that was deleted has more behind its name, and is none of those that can be opened.
    let ours = |path: &&str| is_ours(Path::new(path)) || path.rsplit('/').next() == Some(BUILT);
    paths.filter(ours).map(|path| process.join("root").join(path)).collect()
}

/// What libibverbs would load: by its own rules, a name without a slash is looked for in its folder of providers, and to
/// an absolute one it appends the rest of the name.
fn installed(root: &Path, variables: &[OsString]) -> Vec<PathBuf> {
    let mut names: Vec<String> = Vec::new();
    for variable in variables {
        names.extend(variable.to_string_lossy().split([':', ';']).map(str::to_owned));
    }
    for entry in fs::read_dir(root.join(CONFIGURATION)).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        names.extend(
            text.lines().filter_map(|line| Some(line.trim().strip_prefix("driver ")?.trim().to_owned())),
        );
    }
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    for name in names.iter().filter(|name| name.starts_with('/')) {
        let absolute = root.join(name.trim_start_matches('/'));
        folders.extend(absolute.parent().map(Path::to_owned));
    }
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_ours(path)).collect()
}

/// Without further names of the same file.
fn distinct(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let identified = paths.into_iter().filter_map(|path| {
        let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(((file.dev(), file.ino()), path))
    });
    let mut found = BTreeMap::new();
    for (identity, path) in identified {
        found.entry(identity).or_insert(path);
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, files: &[&str]) -> PathBuf {
        let root = env::temp_dir().join(format!("tbv-usdt-{name}-{}", std::process::id()));
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        root
    }

    fn names(root: &Path, found: Vec<PathBuf>) -> Vec<String> {
        let strip = |path: &PathBuf| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let mut names: Vec<_> = distinct(found).iter().map(strip).collect();
        names.sort();
        names
    }

    #[test]
    fn installed_providers_are_found_where_libibverbs_looks() {
        let root = tree(
            "installed",
            &[
                "usr/lib64/libibverbs/libusb4_rdma-rdmav34.so",
                "usr/lib64/libibverbs/librxe-rdmav34.so",
                "own/libusb4_rdma-rdmav57.so",
                "other/libusb4_rdma-rdmav34.so",
                "other/libusb4_rdma-rdmav34.so.debug",
                "nowhere/libusb4_rdma-rdmav34.so",
            ],
        );
        fs::create_dir_all(root.join(CONFIGURATION)).unwrap();
        fs::write(root.join(CONFIGURATION).join("a.driver"), "driver rxe\n driver /own/libusb4_rdma \n")
            .unwrap();
        // Another name of the same file.
        std::os::unix::fs::symlink("libusb4_rdma-rdmav34.so", root.join("other/libusb4_rdma-rdmav35.so"))
            .unwrap();
        let variables = ["rxe:/other/libusb4_rdma".into()];
        let found = names(&root, installed(&root, &variables));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().any(|name| name.starts_with("other/libusb4_rdma")), "{found:?}");
        assert!(found.contains(&"own/libusb4_rdma-rdmav57.so".to_owned()), "{found:?}");
        assert!(found.contains(&"usr/lib64/libibverbs/libusb4_rdma-rdmav34.so".to_owned()), "{found:?}");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_a_process_has_mapped_is_found_in_its_own_root() {
        let library = "usr/lib/libibverbs/libusb4_rdma-rdmav34.so";
        let own = "build/libusb4_rdma.so";
        let inside = |path: &str| ["proc/7", "root", path].join("/");
        let root = tree("mapped", &[&inside(library), &inside(own)]);
        let line = |path: &str| format!("7f00-7f01 r-xp 00000000 fe:00 12 {path}\n");
        let maps = [
            line(""),
            line("[heap]"),
            line("/usr/lib/libc.so.6"),
            line(&format!("/{library}")),
            line(&format!("/{library}")),
            line(&format!("/{own}")),
            line("/old/libusb4_rdma-rdmav34.so (deleted)"),
        ];
        fs::write(root.join("proc/7/maps"), maps.concat()).unwrap();
        assert_eq!(names(&root, mapped(&root, 7)), [inside(own), inside(library)]);
        assert!(mapped(&root, 8).is_empty());
        assert_eq!(processes(&root), [7]);
        fs::remove_dir_all(&root).unwrap();
    }
}
