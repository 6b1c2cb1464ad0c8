//! `tbv-trace run`: everything is attached before the command is started, as a child that
//! the fork program follows from birth: so there is no moment in which it runs unseen. It
//! keeps its standard streams and its exit status.

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, ExitCode, ExitStatus},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    iterator::{
        SignalsInfo,
        exfiltrator::{WithOrigin, origin::Origin},
    },
};
use tbv_core::{Options, Report, Tracer, devices, environment::Environment};

use crate::{
    cli::RunArgs,
    exit,
    output::{self, Output},
};

/// `tbv-trace run`.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let root = Path::new("/");
    let mut devices = devices::list(root);
    let tracer = Tracer::start(&Options { hook: args.hook, descendants: true, max_rows: args.max_rows })?;
    let out = Output::open(args.output.as_deref(), args.show.format)?;
    let begin = Instant::now();
    let status = match execute(args)? {
        Ok(status) => status,
        Err(code) => return Ok(ExitCode::from(code)),
    };
    let duration = begin.elapsed();
    let (hook, passed_over, known) = (tracer.hook(), tracer.passed_over().to_vec(), tracer.devices_known());
    let driver_trace_abi = tracer.driver_trace_abi();
    let snapshot = tracer.stop()?;
    // Devices that came during the run are known now, those that went were known before.
    devices.extend(devices::list(root));
    let mut environment = Environment::read(root, hook, &passed_over, &devices);
    environment.devices_known = known;
    environment.driver_trace_abi = driver_trace_abi;
    let words = args.command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let code = status.code().unwrap_or_else(|| exit::SIGNALLED + status.signal().unwrap_or(0));
    let report = Report::new(&snapshot, environment, &devices).of_command(words, duration, code);
    // A reader that went away does not change how the command ended.
    match output::write(&report, &args.show, &mut *out.begin()?) {
        Err(error) if !exit::is_closed_pipe(&error) => return Err(error),
        _ => {}
    }
    if args.strict && report.loss.total > 0 {
        eprintln!(
            "tbv-trace: {} events were lost (see the report), and --strict was given",
            report.loss.total
        );
        return Ok(ExitCode::from(exit::LOST));
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Runs the command to its end. The inner error is the exit status for one that could not be
/// started, already explained.
fn execute(args: &RunArgs) -> Result<Result<ExitStatus, u8>> {
    let Some((program, rest)) = args.command.split_first() else { bail!("no command given") };
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP])
        .context("cannot catch signals")?;
    let mut child = match Command::new(program).args(rest).spawn() {
        Ok(child) => child,
        Err(e) => return Ok(Err(not_started(&program.to_string_lossy(), &e))),
    };
    loop {
        if let Some(status) = child.try_wait().context("waiting for the command")? {
            return Ok(Ok(status));
        }
        for Origin { signal, process, .. } in signals.wait() {
            // A key on the terminal reaches the command by itself. What was sent to us alone
            // is passed on; tbv-trace stays to print the result when the command ends.
            if signal != SIGCHLD && process.is_some() {
                // SAFETY: sends a signal to our own child, which is not reaped yet.
                unsafe { libc::kill(child.id() as libc::pid_t, signal) };
            }
        }
    }
}

fn not_started(program: &str, error: &io::Error) -> u8 {
    eprintln!("tbv-trace: cannot run {program}: {error}");
    if error.kind() == io::ErrorKind::NotFound { exit::NOT_FOUND } else { exit::NOT_EXECUTABLE }
}
