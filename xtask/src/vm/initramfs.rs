//! The guest's first file system: busybox, a few modules and the scripts under `guest/`.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{cpio::Archive, modules};
use crate::{kernels::Kernel, paths, process};

/// Names that the scripts call busybox by.
const APPLETS: [&str; 22] = [
    "cat",
    "chmod",
    "cp",
    "hostname",
    "insmod",
    "ip",
    "ln",
    "mkdir",
    "mkfifo",
    "mount",
    "printf",
    "readlink",
    "setsid",
    "sh",
    "sleep",
    "stat",
    "stty",
    "switch_root",
    "sync",
    "umount",
    "true",
    "false",
];

/// The part of the image that is the same in every guest of this kernel, from the cache.
pub(crate) fn base(kernel: &Kernel) -> Result<Vec<u8>> {
    let folder = paths::cache()?.join("initramfs");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = folder.join(&kernel.version);
    let busybox = process::find_program("busybox").context("no program busybox; run `cargo xtask setup`")?;
    if is_newer(&file, &[&busybox, &kernel.modules().join("modules.dep")]) {
        return fs::read(&file).with_context(|| format!("cannot read {}", file.display()));
    }
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "guest"] {
        archive.directory(folder);
    }
    archive.file(
        "bin/busybox",
        &fs::read(&busybox).with_context(|| format!("cannot read {}", busybox.display()))?,
    );
    for applet in APPLETS {
        archive.link(&format!("bin/{applet}"), "busybox");
    }
    let modules = modules::load(kernel)?;
    for (name, content) in &modules {
        archive.file(&format!("guest/{name}.ko"), content);
    }
    let names: Vec<&str> = modules.iter().map(|(name, _)| name.as_str()).collect();
    archive.file("guest/modules", names.join("\n").as_bytes());
    let bytes = archive.finish();

    // Several guests may start at once: each writes its own file and renames it.
    let fresh = folder.join(format!("{}.{}", kernel.version, std::process::id()));
    fs::write(&fresh, &bytes)
        .and_then(|()| fs::rename(&fresh, &file))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(bytes)
}

/// The part that belongs to one run; the kernel unpacks it over the other.
pub(crate) fn of_run(settings: &[u8], mounts: &[u8], job: &[u8]) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.file("init", include_bytes!("guest/init"));
    archive.file("guest/system", include_bytes!("guest/system"));
    archive.file("guest/settings", settings);
    archive.file("guest/mounts", mounts);
    archive.file("guest/job", job);
    archive.finish()
}

fn is_newer(file: &Path, than: &[&Path]) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    // Our own program's change may change what belongs in the image.
    let own = std::env::current_exe().unwrap_or_default();
    time(file).is_some_and(|made| {
        than.iter().copied().chain([own.as_path()]).all(|path| time(path).is_some_and(|time| time < made))
    })
}
