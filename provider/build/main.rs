//! Finds out which private ABI the installed libibverbs has, and gives the provider the name that it looks for.

#[path = "pabi.rs"]
mod pabi;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Private ABIs that `src/abi` describes.
const SUPPORTED: &[u32] = &[34];

fn main() {
    println!("cargo::rerun-if-env-changed=LIBIBVERBS");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=usb4_rdma.driver");
    if let Err(message) = build() {
        println!("cargo::error={message}");
    }
}

fn build() -> Result<(), String> {
    let library = find_library()?;
    println!("cargo::rerun-if-changed={}", library.display());
    if let Some(folder) = library.parent() {
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
    let image = fs::read(&library).map_err(|e| format!("cannot read {}: {e}", library.display()))?;
    let pabi = pabi::of(&image).map_err(|e| format!("{}: {e}", library.display()))?;
    if !SUPPORTED.contains(&pabi) {
        return Err(format!(
            "{} has private ABI {pabi}, and this provider only knows {SUPPORTED:?}: build against another libibverbs \
             (LIBIBVERBS=/path/to/libibverbs.so.1), or describe the new ABI in provider/src/abi",
            library.display()
        ));
    }
    println!("cargo::rustc-env=USB4_RDMA_PABI={pabi}");
    place_beside_binaries(pabi).map_err(|e| format!("cannot name the provider in the target folder: {e}"))
}

/// The library given by LIBIBVERBS, or the one that the C compiler would link.
fn find_library() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("LIBIBVERBS") {
        return Ok(path.into());
    }
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(&compiler).arg("-print-file-name=libibverbs.so.1").output();
    let output =
        output.map_err(|e| format!("cannot start {compiler}: {e}; install a C compiler or set CC"))?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // The compiler answers with the bare name if it found nothing.
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("libibverbs.so.1 is not installed: install it (Debian: libibverbs1, Fedora: libibverbs) or set \
             LIBIBVERBS to its path"
            .into())
    }
}

/// libibverbs appends `-rdmav<PABI>.so` to a driver's name, and cargo cannot produce a name with a hyphen: so a link
/// beside cargo's file, and with it the one-line configuration file that an installation needs.
fn place_beside_binaries(pabi: u32) -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // <profile folder>/build/<package>/out
    let profile = out.ancestors().nth(3).ok_or(io::ErrorKind::NotFound)?;
    let link = profile.join(format!("libusb4_rdma-rdmav{pabi}.so"));
    match fs::remove_file(&link) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => std::os::unix::fs::symlink(Path::new("libusb4_rdma.so"), &link)?,
    }
    fs::copy("usb4_rdma.driver", profile.join("usb4_rdma.driver"))?;
    Ok(())
}
