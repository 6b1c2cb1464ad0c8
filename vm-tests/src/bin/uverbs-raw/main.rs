//! A raw uverbs client: it sends well-formed and malformed calls to a uverbs device and prints, as one
//! JSON object a line, exactly what it sent and what came back:
//! `{"pid", "entry", "op", "errno", "count"}`, with errno `null` for success.

mod cases;
mod memory;
mod request;
mod tally;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cases::Case;
use clap::Parser;
use tally::Tally;

/// Sends raw calls to a uverbs device and says exactly which.
#[derive(Parser)]
struct Arguments {
    /// Device file.
    #[arg(long, default_value = "/dev/infiniband/uverbs0")]
    device: String,
    /// Driver id for the headers; the default is RDMA_DRIVER_RXE.
    #[arg(long, default_value_t = 14)]
    driver: u32,
    /// Names of the cases to send, in this order; all if empty.
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// Prints the names of the cases.
    #[arg(long)]
    list: bool,
    /// How often each thread sends every case.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Sends as fast as it can for this long, instead of --count times.
    #[arg(long)]
    seconds: Option<u64>,
    /// Threads of each process.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Processes; with more than one, the first only starts the others.
    #[arg(long, default_value_t = 1)]
    procs: usize,
    /// Also sends calls that never reach ib_uverbs, and does not print them.
    #[arg(long)]
    unseen: bool,
    /// First sends every case once, unprinted, writes GATE to descriptor -1, and waits until this file is there.
    #[arg(long)]
    gate: Option<PathBuf>,
    /// Instead of all else: each process, one after the other, sends this many ioctls of different unknown numbers.
    #[arg(long)]
    spread: Option<u32>,
    /// A process kills itself by SIGKILL when one of its threads has sent this many calls.
    #[arg(long)]
    kill_after: Option<u64>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("uverbs-raw: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let all = cases::all(arguments.driver)?;
    if arguments.list {
        all.iter().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    let find = |name: &String| {
        all.iter().find(|case| case.name == name).with_context(|| format!("no case '{name}': see --list"))
    };
    let chosen: Vec<&Case> = match arguments.cases.as_slice() {
        [] => all.iter().collect(),
        names => names.iter().map(find).collect::<Result<_>>()?,
    };
    if let Some(count) = arguments.spread {
        return spread(arguments, count);
    }
    if let Some(gate) = &arguments.gate {
        hold(arguments, &chosen, gate)?;
    }
    if arguments.procs == 1 {
        return process(arguments, &chosen);
    }
    let mut children = Vec::new();
    for _ in 0..arguments.procs {
        // SAFETY: this process has one thread, so the child may do what it likes.
        match unsafe { libc::fork() } {
            0 => return process(arguments, &chosen),
            -1 => return Err(std::io::Error::last_os_error()).context("fork"),
            child => children.push(child),
        }
    }
    for child in children {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        ensure!(waited == child && status == 0, "child {child}: status {status}");
    }
    Ok(())
}

/// A 32-bit system call that has the number of the 64-bit ioctl, with an ioctl's arguments where those would be.
fn lchown_the_32_bit_way(file: &File) {
    // SAFETY: lchown(NULL) fails; nothing else is touched.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "xor ebx, ebx",
            "int 0x80",
            "pop rbx",
            inout("rax") 16_u64 => _,
            in("rcx") 0_u64,
            in("rdx") 0_u64,
            in("rdi") file.as_raw_fd() as u64,
            in("rsi") cases::RDMA_VERBS_IOCTL,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
}

/// What is sent before anyone is to count it, and the wait.
fn hold(arguments: &Arguments, cases: &[&Case], gate: &Path) -> Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(&arguments.device);
    let file = file.with_context(|| arguments.device.clone())?;
    let mut unprinted = Tally::default();
    unprinted.send(&cases::get_context(arguments.driver), &file)?;
    cases.iter().try_for_each(|case| unprinted.send(case, &file))?;
    // SAFETY: the bytes are there; the descriptor is none.
    unsafe { libc::write(-1, c"GATE".as_ptr().cast(), 4) };
    while !gate.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Short-lived processes with many operations each.
fn spread(arguments: &Arguments, count: u32) -> Result<()> {
    for _ in 0..arguments.procs {
        let file = OpenOptions::new().read(true).write(true).open(&arguments.device);
        let file = file.with_context(|| arguments.device.clone())?;
        // SAFETY: this process has one thread; the child makes system calls only.
        match unsafe { libc::fork() } {
            0 => {
                for number in 0..count {
                    // SAFETY: no command has this number, so nothing is read or written.
                    unsafe { libc::ioctl(file.as_raw_fd(), (0x5a00 + number).into(), 0) };
                }
                // SAFETY: ends the child without what the parent left to do.
                unsafe { libc::_exit(0) };
            }
            -1 => return Err(std::io::Error::last_os_error()).context("fork"),
            child => {
                let mut status = 0;
                // SAFETY: `status` outlives the call.
                let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
                ensure!(waited == child && status == 0, "child {child}: status {status}");
            }
        }
    }
    Ok(())
}

/// What one process sends and prints.
fn process(arguments: &Arguments, cases: &[&Case]) -> Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(&arguments.device);
    let file = file.with_context(|| arguments.device.clone())?;
    let mut tally = Tally::default();
    tally.send(&cases::get_context(arguments.driver), &file)?;
    if arguments.unseen {
        let read_only = File::open(&arguments.device).with_context(|| arguments.device.clone())?;
        let write = cases::all(arguments.driver)?.into_iter().filter(|case| case.name == "write");
        let mut ignored = Tally::default();
        for case in cases::unseen(arguments.driver) {
            ignored.send(&case, &file)?;
        }
        let path_only = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&arguments.device)?;
        for case in cases {
            ignored.send(case, &path_only)?;
        }
        lchown_the_32_bit_way(&file);
        for case in write {
            ignored.send(&case, &read_only)?;
        }
    }
    let threads: Vec<Tally> = std::thread::scope(|scope| {
        let started: Vec<_> =
            (0..arguments.threads).map(|_| scope.spawn(|| thread(arguments, cases, &file))).collect();
        started
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
            .collect::<Result<_>>()
    })?;
    threads.into_iter().for_each(|other| tally.add(other));
    std::io::stdout().write_all(tally.to_json_lines().as_bytes()).context("stdout")
}

fn thread(arguments: &Arguments, cases: &[&Case], file: &File) -> Result<Tally> {
    let mut tally = Tally::default();
    let end = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut sent = 0;
    let mut rounds = 0;
    while end.map_or(rounds < arguments.count, |end| Instant::now() < end) {
        for case in cases {
            tally.send(case, file)?;
            sent += 1;
            if Some(sent) == arguments.kill_after {
                // SAFETY: neither function touches memory.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
        }
        rounds += 1;
    }
    Ok(tally)
}
