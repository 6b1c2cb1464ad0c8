//! What can be said about the kernel module without running it: sparse and checkpatch. Any finding is a failure.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{kernels, kmod, paths, process, setup};

/// Folders with C that goes into the kernel, or that the kernel shares.
const FOLDERS: [&str; 3] = ["kmod", "kmod/tests", "proto"];

/// Runs both, and shows all that either has to say.
pub(crate) fn run() -> Result<()> {
    let mut clean = true;
    for (name, mut command) in [("sparse", sparse()?), ("checkpatch", checkpatch()?)] {
        let output =
            command.output().with_context(|| format!("cannot start `{}`", process::shown(&command)))?;
        let said = [output.stdout, output.stderr].concat();
        let finding = finding(output.status.success(), &said);
        println!("{name}: {}", finding.as_deref().unwrap_or("no finding"));
        clean &= finding.is_none();
    }
    ensure!(clean, "the kernel module has findings");
    Ok(())
}

/// Both tools are silent about good code, so whatever is said is a finding; and so is failing in silence.
fn finding(success: bool, said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    match said.trim() {
        "" if success => None,
        "" => Some("failed and did not say why".to_owned()),
        text => Some(text.to_owned()),
    }
}

/// sparse over every source, after a build, so that only sparse speaks.
fn sparse() -> Result<Command> {
    let kernel = kernels::choose(None)?;
    kmod::build(&kernel)?;
    Ok(kmod::make(&kernel, &["check"]))
}

fn checkpatch() -> Result<Command> {
    setup::checkpatch::install()?;
    let script = setup::checkpatch::script()?;
    ensure!(script.is_file(), "no {}; run `cargo xtask setup`", script.display());
    let mut command = process::command("perl", [&script]);
    command.args(["--no-tree", "--strict", "--quiet", "--no-summary", "--show-types", "--terse", "-f"]);
    // It may leave a list of words in the current folder.
    command.args(files(&paths::root())?).current_dir(paths::target());
    Ok(command)
}

/// Every C source and header in the folders.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let entries = fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "c" || e == "h") && !kmod::made(&path) {
                files.push(path);
            }
        }
    }
    ensure!(!files.is_empty(), "no C file to check");
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_is_a_finding_and_so_is_silent_failure() {
        assert_eq!(finding(true, b"\n"), None);
        assert_eq!(finding(true, b"x.c:1:1: warning: y\n").unwrap(), "x.c:1:1: warning: y");
        assert!(finding(false, b"").is_some());
    }

    #[test]
    fn every_folder_has_files_and_none_is_made_by_a_build() {
        let files = files(&paths::root()).unwrap();
        for folder in FOLDERS {
            let folder = paths::root().join(folder);
            assert!(files.iter().any(|file| file.parent() == Some(&folder)), "{folder:?}");
        }
        assert!(files.iter().all(|file| !file.to_string_lossy().ends_with(".mod.c")));
    }
}
