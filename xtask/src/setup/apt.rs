//! A private view of the Debian archive: this machine's own sources plus backports, kept in the
//! cache. The host's apt configuration is never changed.

use std::{fs, fs::File, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use super::sources::{self, Source};
use crate::{paths, process};

/// rust-src is packaged for the newer stable release only; a source package fits any release.
const RUST_SUITE: &str = "trixie-backports";

/// Apt with its own list of sources, its own state and its own downloads.
pub(crate) struct PrivateApt {
    dir: PathBuf,
    /// Two would write the same lists and downloads.
    _lock: File,
}

impl PrivateApt {
    /// Writes the list of sources and fetches the package lists.
    pub(crate) fn refresh() -> Result<Self> {
        let apt = Self { dir: paths::cache()?.join("apt"), _lock: super::lock("apt")? };
        for folder in ["lists/partial", "archives/partial"] {
            let folder = apt.dir.join(folder);
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let lines: Vec<String> =
            wanted(&sources::of_machine()?, &codename()?)?.iter().map(Source::line).collect();
        let list = apt.dir.join("sources.list");
        fs::write(&list, lines.join("\n") + "\n")
            .with_context(|| format!("cannot write {}", list.display()))?;
        process::quiet(apt.tool("apt-get").args(["update", "-q"]))
            .context("cannot fetch the package lists; check the network and this machine's apt sources")?;
        Ok(apt)
    }

    /// Names of packages that begin with `prefix`.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let text = process::output(self.tool("apt-cache").args(["pkgnames", prefix]))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Versions of `package`, newest first.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>> {
        let text = process::output(self.tool("apt-cache").args(["madison", package]))?;
        Ok(text.lines().filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned())).collect())
    }

    /// Downloads `packages` (`name` or `name=version`), unpacks each into `into`, as if that were
    /// `/`, and deletes the downloads. No maintainer script runs.
    pub(crate) fn unpack(&self, packages: &[String], into: &std::path::Path) -> Result<()> {
        let downloads = into.with_extension("debs");
        fs::create_dir_all(&downloads).with_context(|| format!("cannot create {}", downloads.display()))?;
        fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
        process::quiet(self.tool("apt-get").args(["download", "-q"]).args(packages).current_dir(&downloads))?;
        for entry in fs::read_dir(&downloads)? {
            process::quiet(Command::new("dpkg-deb").arg("-x").arg(entry?.path()).arg(into))?;
        }
        fs::remove_dir_all(&downloads).with_context(|| format!("cannot remove {}", downloads.display()))
    }

    fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, path) in [
            ("Dir::Etc::sourcelist", self.dir.join("sources.list")),
            ("Dir::Etc::sourceparts", PathBuf::from("/dev/null")),
            ("Dir::State::lists", self.dir.join("lists")),
            ("Dir::Cache", self.dir.clone()),
            ("APT::Sandbox::User", PathBuf::from("root")),
            ("Acquire::Languages", PathBuf::from("none")),
        ] {
            command.arg("-o").arg(format!("{name}={}", path.display()));
        }
        command
    }
}

/// The machine's own release with its updates, its backports, and the suite that has rust-src.
fn wanted(machine: &[Source], codename: &str) -> Result<Vec<Source>> {
    let own = |source: &&Source| {
        let suite = source.suite.as_str();
        suite == codename || suite.strip_prefix(codename).is_some_and(|rest| rest.starts_with(['-', '/']))
    };
    let mut wanted: Vec<Source> = machine.iter().filter(own).cloned().collect();
    let Some(base) = wanted.iter().find(|source| source.suite == codename).cloned() else {
        bail!(
            "no apt source for the suite {codename} with component main under /etc/apt, so the Debian mirror is \
             unknown; add one there"
        );
    };
    for suite in [format!("{codename}-backports"), RUST_SUITE.to_owned()] {
        if !wanted.iter().any(|source| source.suite == suite) {
            wanted.push(base.with_suite(&suite));
        }
    }
    Ok(wanted)
}

fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.context("no VERSION_CODENAME in /etc/os-release; setup knows Debian's releases only")?;
    Ok(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, suite: &str) -> Source {
        Source { uri: uri.into(), suite: suite.into(), keyring: None }
    }

    #[test]
    fn wanted_keeps_the_release_and_adds_backports() {
        let machine = [
            source("http://m/debian", "bookworm"),
            source("http://m/security", "bookworm-security"),
            source("http://other", "cloud-bookworm"),
            source("http://other", "bookwormish"),
        ];
        let suites: Vec<String> =
            wanted(&machine, "bookworm").unwrap().iter().map(|s| format!("{} {}", s.uri, s.suite)).collect();
        assert_eq!(
            suites,
            [
                "http://m/debian bookworm",
                "http://m/security bookworm-security",
                "http://m/debian bookworm-backports",
                "http://m/debian trixie-backports"
            ]
        );
        assert!(wanted(&machine[1..], "bookworm").unwrap_err().to_string().contains("bookworm"));
    }

    #[test]
    fn wanted_adds_no_suite_twice() {
        let machine = [source("http://m/debian", "trixie"), source("http://n/debian", "trixie-backports")];
        assert_eq!(wanted(&machine, "trixie").unwrap(), machine);
    }
}
