//! Running tbv-trace as someone who is not root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::rxe;

const NOBODY: &str = "65534";

/// The words that start a program as nobody, with these capabilities (`bpf`, `perfmon`) and no others.
pub fn with(capabilities: &[&str]) -> Vec<String> {
    let set: String = capabilities.iter().map(|name| format!(",+{name}")).collect();
    let words = [
        "setpriv".to_owned(),
        format!("--reuid={NOBODY}"),
        format!("--regid={NOBODY}"),
        "--clear-groups".to_owned(),
        format!("--inh-caps=-all{set}"),
        format!("--ambient-caps=-all{set}"),
    ];
    words.into()
}

/// A copy of `program` (a path, or a name in PATH) that anybody may execute: the source tree may lie in a home.
pub fn copy(program: &str) -> Result<String> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&search).map(|dir| dir.join(program));
    let found: PathBuf = places.find(|place| place.is_file()).with_context(|| format!("no {program}"))?;
    let folder = std::env::temp_dir().join("for-nobody");
    fs::create_dir_all(&folder)?;
    let copy = folder.join(Path::new(program).file_name().context("no name")?);
    if !copy.exists() {
        fs::copy(&found, &copy)?;
    }
    for path in [&folder, &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(copy.to_string_lossy().into_owned())
}

/// Lets everybody open the software device.
pub fn open_device() -> Result<()> {
    rxe::set_up()?;
    let device = "/dev/infiniband/uverbs0";
    fs::set_permissions(device, fs::Permissions::from_mode(0o666)).context(device)
}
