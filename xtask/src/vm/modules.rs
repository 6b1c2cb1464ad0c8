//! Finds the modules that a guest needs before it has a root file system.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{kernels::Kernel, process};

/// Modules for the host's files over 9p, the guest's ports and the writable overlays. Some are
/// built into some kernels.
const NEEDED: [&str; 5] = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"];

/// Name and uncompressed content of each module, in the order of loading.
pub(crate) fn load(kernel: &Kernel) -> Result<Vec<(String, Vec<u8>)>> {
    let dir = kernel.modules();
    let read = |name: &str| {
        let path = dir.join(name);
        fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}; `cargo xtask setup` makes it", path.display()))
    };
    let files = order(&NEEDED, &read("modules.dep")?, &read("modules.builtin")?)
        .with_context(|| format!("kernel {} cannot boot a guest", kernel.version))?;
    files.iter().map(|file| Ok((module_name(file).to_owned(), content(&dir.join(file))?))).collect()
}

/// Files to load for `needed`, dependencies first.
fn order(needed: &[&str], modules_dep: &str, builtin: &str) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for name in needed {
        let entry = modules_dep.lines().filter_map(|line| line.split_once(':'));
        let Some((file, dependencies)) =
            entry.into_iter().find(|(file, _)| module_name(Path::new(file)) == *name)
        else {
            if builtin.lines().any(|line| module_name(Path::new(line)) == *name) {
                continue;
            }
            bail!("it has no module {name}");
        };
        // modules.dep lists each module's whole chain, nearest dependency first.
        for file in dependencies.split_whitespace().rev().chain([file]) {
            if !files.iter().any(|known| known == Path::new(file)) {
                files.push(file.into());
            }
        }
    }
    Ok(files)
}

/// `kernel/fs/9p/9p.ko.xz` → `9p`. File names may use dashes where the kernel says underscores.
fn module_name(file: &Path) -> &str {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split_once(".ko").map_or(name, |(name, _)| name)
}

fn content(file: &Path) -> Result<Vec<u8>> {
    let program = match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(file).with_context(|| format!("cannot read {}", file.display())),
    };
    let output = process::command(program, ["-dc"])
        .arg(file)
        .output()
        .with_context(|| format!("cannot start {program} to uncompress {}", file.display()))?;
    if !output.status.success() {
        bail!("cannot uncompress {}: {}", file.display(), String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/net/9p/9pnet.ko.xz:\n\
                       kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n\
                       kernel/fs/netfs/netfs.ko.xz:\n\
                       kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz\n";

    #[test]
    fn dependencies_come_first_and_once() {
        let files = order(&["9pnet_virtio", "9p"], DEP, "").unwrap();
        let names: Vec<&str> = files.iter().map(|file| module_name(file)).collect();
        assert_eq!(names, ["9pnet", "9pnet_virtio", "netfs", "9p"]);
    }

    #[test]
    fn built_in_is_fine_and_missing_is_not() {
        let builtin = "kernel/drivers/virtio/virtio_pci.ko\n";
        assert!(order(&["virtio_pci"], DEP, builtin).unwrap().is_empty());
        assert!(order(&["overlay"], DEP, builtin).unwrap_err().to_string().contains("overlay"));
    }
}
