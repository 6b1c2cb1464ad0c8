//! One test for each arrow of the diagrams in docs/ARCHITECTURE.md, under the arrow's name. That it was taken is
//! proved by the driver's tracepoints and counters, by completions and by the queue pair's state.
#![cfg(feature = "vm")]

mod bench;
mod halfway;
mod qp;
mod receive;
mod send;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use vm_tests::command;

const DOC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ARCHITECTURE.md");

/// Names in the first column of the tables under "## The driver's queue pair": `` | `name` | ``.
fn arrows_in(doc: &str) -> Result<BTreeSet<String>> {
    let (_, section) = doc.split_once("\n## The driver's queue pair\n").context("no such section")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let name = |line: &str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned());
    let names: Vec<String> = section.lines().filter_map(name).collect();
    let set: BTreeSet<String> = names.iter().cloned().collect();
    ensure!(set.len() == names.len(), "an arrow is there twice: {names:?}");
    Ok(set)
}

/// This program's tests, without their modules, but for the one below.
fn tests() -> Result<BTreeSet<String>> {
    let own = std::env::current_exe()?;
    let list = command::run(&[&own.to_string_lossy(), "--list"], vm_tests::command::LIMIT)?.success()?;
    let name = |line: &str| line.strip_suffix(": test")?.rsplit("::").next().map(str::to_owned);
    Ok(list.stdout.lines().filter_map(name).filter(|name| name != "every_arrow_has_its_test").collect())
}

#[test]
fn every_arrow_has_its_test() -> Result<()> {
    let (arrows, tests) = (arrows_in(&std::fs::read_to_string(DOC).context(DOC)?)?, tests()?);
    ensure!(
        arrows == tests && !arrows.is_empty(),
        "only in {DOC}: {:?}; only tested: {:?}",
        arrows.difference(&tests),
        tests.difference(&arrows)
    );
    Ok(())
}
