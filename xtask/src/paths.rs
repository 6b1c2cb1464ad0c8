//! Where things lie: the workspace, its target folder and the cache that all checkouts share.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The folder of what `setup` makes: `$TBV_CACHE`, `$XDG_CACHE_HOME/tbv` or `~/.cache/tbv`.
///
/// Not under `target`, so that `cargo clean` keeps it and several checkouts share it.
/// tbv-core's build script looks in the same place.
pub(crate) fn cache() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("TBV_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("tbv")))
        .or_else(|| set("HOME").map(|dir| dir.join(".cache/tbv")))
        .context("no folder for the cache: neither TBV_CACHE, XDG_CACHE_HOME nor HOME is set; set TBV_CACHE")
}
