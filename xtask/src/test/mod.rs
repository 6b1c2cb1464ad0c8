//! `cargo xtask test`: every check, on this machine and in guests, and one closing line.

mod doubles;
pub(crate) mod formats;
mod help;
pub(crate) mod kmod_static;
mod results;
mod suites;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _, pipe},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};

use self::{
    results::{Counts, Outcome},
    suites::{BESIDE, HOST, Suite, VM},
};
use crate::{kernels, kmod, paths, process, setup};

#[derive(clap::Args)]
#[command(after_help = help::text())]
pub(crate) struct Args {
    /// Run every suite, instead of the quick tier
    #[arg(long)]
    full: bool,
    /// Suites at a time, once the guests run [default: processors + 1, at most 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    jobs: Option<u16>,
    /// Only suites whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// Runs the suites; an error if one of them failed or none ran.
pub(crate) fn run(args: &Args) -> Result<()> {
    let chosen = |suite: &&Suite| suite.name.contains(&args.filter);
    announce(args.full);
    setup::run(&setup::Args::default())?;
    let mut outcomes = Vec::new();
    for suite in HOST.iter().filter(chosen) {
        outcomes.push(perform(suite, host(suite)?)?);
    }
    let guests: Vec<&Suite> =
        VM.iter().filter(chosen).filter(|suite| args.full || !suite.full_only).collect();
    let mut jobs = Vec::new();
    for suite in BESIDE.iter().filter(chosen) {
        jobs.push((suite, host(suite)?));
    }
    if !guests.is_empty() {
        let binaries = build_guest_tests()?;
        // A file that nobody put into the table would never run, and nobody would notice.
        if let Some((name, _)) = binaries.iter().find(|(name, _)| VM.iter().all(|suite| suite.name != name)) {
            bail!("vm-tests/tests/{name}.rs is in no suite; add it to VM in xtask/src/test/suites.rs");
        }
        for suite in guests {
            let binary = binaries
                .iter()
                .find(|(name, _)| name == suite.name)
                .with_context(|| format!("vm-tests has no test file {}.rs", suite.name))?;
            jobs.push((suite, guest(suite, &binary.1, args.full)?));
        }
    }
    if !jobs.is_empty() {
        outcomes.extend(side_by_side(jobs, args.jobs)?);
    }
    conclude(&outcomes, args.full && args.filter.is_empty())
}

fn announce(full: bool) {
    let tier = if full { "full" } else { "quick" };
    println!("tier: {tier}");
    for suite in VM.iter().filter(|suite| suite.full_only && !full) {
        println!("left out of this tier: {} ({})", suite.name, suite.what);
    }
    if full || VM.iter().all(|suite| !suite.full_only) {
        println!("left out of this tier: nothing");
    }
}

fn host(suite: &Suite) -> Result<Command> {
    let mut words = suite.command.split(' ');
    let mut command = match words.next().unwrap_or_default() {
        // Not through cargo, which would build it anew while it runs.
        "xtask" => process::xtask(words)?,
        program => process::command(program, words),
    };
    command.envs(suite.env);
    command.current_dir(paths::root());
    Ok(command)
}

fn guest(suite: &Suite, binary: &str, full: bool) -> Result<Command> {
    let mut command = process::xtask(["vm", "--no-build"])?;
    // There some tests do more.
    let limit_s = if full { 4 * suite.limit_s } else { suite.limit_s };
    command.args(["--timeout", &limit_s.to_string()]);
    if !suite.driver {
        command.arg("--no-kmod");
    }
    if suite.debug_kernel {
        let kernel = setup::debug_kernel::install()?;
        kmod::build(&kernel)?;
        // KASAN takes an eighth of it, and kmemleak its records.
        command.args(["--kernel", &kernel.version, "--memory", "3G"]);
    }
    if !suite.append.is_empty() {
        command.args(["--append", suite.append]);
    }
    command.arg("--");
    if full {
        command.args(["env", "TBV_FULL=1"]);
    }
    command.args([binary, "--test-threads=1"]);
    command.current_dir(paths::root());
    Ok(command)
}

/// Runs one suite, passing its output on while counting its tests.
fn perform(suite: &Suite, mut command: Command) -> Result<Outcome> {
    println!("\n== {}: {}", suite.name, suite.what);
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", process::shown(&command)))?;
    let mut counts = Counts::default();
    let out = child.stdout.take().context("no output to read")?;
    for line in BufReader::new(out).split(b'\n') {
        let line = line.context("reading the suite's output")?;
        let text = String::from_utf8_lossy(&line);
        println!("{text}");
        counts.read(&text);
    }
    std::io::stdout().flush()?;
    let status = child.wait().context("waiting for the suite")?;
    let judged = suite.judge(counts, status.success());
    Ok(Outcome { suite: suite.name, counts: judged, seconds: begin.elapsed().as_secs() })
}

/// Runs suites in guests and what goes beside them, some at a time: an emulated guest needs one processor, and waits
/// often. Each one's output comes when it has ended.
fn side_by_side(jobs: Vec<(&Suite, Command)>, at_once: Option<u16>) -> Result<Vec<Outcome>> {
    let processors = thread::available_parallelism().map_or(1, |n| n.get().min(4));
    let at_once = at_once.map_or(processors + 1, usize::from).min(jobs.len());
    let order: Vec<&str> = jobs.iter().map(|(suite, _)| suite.name).collect();
    println!("\n{at_once} at a time: {}", order.join(", "));
    let queue = Mutex::new(jobs.into_iter());
    let work = || -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        loop {
            // The lock is free again when the job has been taken.
            let job = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((suite, command)) = job else { return Ok(outcomes) };
            outcomes.push(perform_quietly(suite, command)?);
        }
    };
    let mut outcomes = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|_| bail!("a worker panicked")))
            .collect::<Result<Vec<_>>>()
    })?
    .concat();
    outcomes.sort_by_key(|outcome| order.iter().position(|name| *name == outcome.suite));
    Ok(outcomes)
}

/// Runs one suite, and prints all that it printed when it has ended.
fn perform_quietly(suite: &Suite, mut command: Command) -> Result<Outcome> {
    println!("begun: {}", suite.name);
    let begin = Instant::now();
    let (mut ours, theirs) = pipe().context("cannot make a pipe")?;
    let mut child = command
        .stdin(Stdio::null())
        .stderr(theirs.try_clone().context("cannot share a pipe")?)
        .stdout(theirs)
        .spawn()
        .with_context(|| format!("cannot start `{}`", process::shown(&command)))?;
    // Its own ends of the pipe would keep the reading from ending.
    drop(command);
    let mut output = Vec::new();
    ours.read_to_end(&mut output).context("reading the suite's output")?;
    let status = child.wait().context("waiting for the suite")?;
    let output = String::from_utf8_lossy(&output);
    let mut counts = Counts::default();
    output.lines().for_each(|line| counts.read(line));
    let outcome = Outcome {
        suite: suite.name,
        counts: suite.judge(counts, status.success()),
        seconds: begin.elapsed().as_secs(),
    };
    println!("\n== {}: {}\n{output}", suite.name, suite.what);
    Ok(outcome)
}

/// Builds what runs in guests; the tests' names and files.
fn build_guest_tests() -> Result<Vec<(String, String)>> {
    eprintln!("build: building what runs in guests");
    // With all tests: without them, dependencies have fewer features, and half of the workspace would be built anew.
    let mut build = process::command("cargo", ["build", "--workspace", "--exclude", "xtask"]);
    build.args([
        "--lib",
        "--bins",
        "--tests",
        "--features",
        "vm-tests/vm",
        "--message-format=json-render-diagnostics",
    ]);
    let messages = process::output(build.current_dir(paths::root()))?;
    doubles::build()?;
    kmod::build(&kernels::choose(None)?)?;
    let mut found = Vec::new();
    for line in messages.lines() {
        let message: serde_json::Value = serde_json::from_str(line).context("cargo's messages")?;
        let (name, kind) = (&message["target"]["name"], &message["target"]["kind"][0]);
        let ours =
            message["manifest_path"].as_str().is_some_and(|path| path.ends_with("vm-tests/Cargo.toml"));
        if let (true, Some(name), Some("test"), Some(file)) =
            (ours, name.as_str(), kind.as_str(), message["executable"].as_str())
        {
            found.push((name.to_owned(), file.to_owned()));
        }
    }
    Ok(found)
}

/// Prints the result; a `whole` one of the full tier is also kept.
fn conclude(outcomes: &[Outcome], whole: bool) -> Result<()> {
    ensure!(!outcomes.is_empty(), "no suite has that in its name");
    let table = results::table(outcomes);
    let total = results::total(outcomes);
    let line = format!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    println!("\n{table}\n{line}");
    if whole {
        let file = paths::root().join("docs/results/test-full.md");
        let kernel = kernels::choose(None)?.version;
        fs::write(
            &file,
            format!("# `cargo xtask test --full`\n\nGuest kernel {kernel}.\n\n{table}\n{line}\n"),
        )
        .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if total.failed > 0 {
        let failed = outcomes.iter().filter(|outcome| outcome.counts.failed > 0);
        let names: Vec<&str> = failed.map(|outcome| outcome.suite).collect();
        bail!("{} failed, in: {}", total.failed, names.join(", "));
    }
    ensure!(total.passed > 0, "no test ran");
    Ok(())
}
