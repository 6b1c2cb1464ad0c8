//! Boots a guest, passes its output through and finds out how its command ended.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    process::ChildStderr,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{
    accel::Accel,
    initramfs,
    job::{self, Settings},
    qemu::{Machine, Running},
    stream::{self, End},
    tty::{self, RawTerminal},
};
use crate::kernels::Kernel;

/// What happens while a guest runs.
pub(super) enum Event {
    /// A line from the guest's control port.
    Control(String),
    /// An output stream ended.
    Stream(End),
    /// A signal told us to stop.
    Signal(i32),
}

/// How a guest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The command ended with this status.
    Exited(u8),
    /// The time was up.
    TimedOut { booted: bool },
    /// The machine went away before the command ended.
    Gone { booted: bool },
    /// Nobody reads our output any more.
    Unread,
    /// A signal told us to stop.
    Stopped(i32),
}

/// What to run in a guest, besides the machine itself.
pub(super) struct Task<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) home: Option<&'a Path>,
    /// A shell script, see [`job::script`].
    pub(super) script: &'a [u8],
    /// Whether the caller's terminal becomes the guest's.
    pub(super) interactive: bool,
    pub(super) timeout: Option<Duration>,
}

/// Boots `machine`, whose initramfs is made here, and runs the task in it.
pub(super) fn run(
    mut machine: Machine,
    task: &Task,
    out: impl Write + Send + 'static,
    err: impl Write + Send + 'static,
) -> Result<Outcome> {
    let token = token()?;
    let settings = Settings {
        home: task.home,
        kernel_lib: &task.kernel.lib(),
        token: &token,
        terminal: task.interactive.then(tty::size),
    };
    machine.initramfs = initramfs::base(task.kernel)?;
    machine.initramfs.extend(initramfs::of_run(
        &settings.script(),
        &job::mounts(machine.shares),
        task.script,
    ));

    let deadline = task.timeout.map(|timeout| Instant::now() + timeout);
    let mut running = machine.start()?;
    let complaints = running.child.stderr.take();
    let (send, events) = mpsc::channel();
    let _raw = task.interactive.then(RawTerminal::enter).transpose()?;
    let streams = if task.interactive {
        pump(&running.terminal, out, &token, &send)?;
        tty::forward(running.terminal.try_clone()?, running.control.try_clone()?, send.clone())?;
        1
    } else {
        pump(&running.stdout, out, &token, &send)?;
        pump(&running.stderr, err, &token, &send)?;
        2
    };
    listen(&running, send)?;
    let outcome = follow(&events, streams, deadline);
    let booted_badly = matches!(outcome, Outcome::Gone { .. });
    drop(running);
    drop(_raw);
    if booted_badly {
        show_complaints(complaints);
    }
    Ok(outcome)
}

/// Boots a guest that does nothing.
pub(super) fn probe(kernel: &Kernel, accel: Accel, timeout: Duration) -> Result<Outcome> {
    let machine = Machine {
        accel,
        cpus: 2,
        memory: "1G",
        kernel: kernel.image(),
        initramfs: Vec::new(),
        append: "",
        log: Path::new("/dev/null"),
        shares: &[],
    };
    let task = Task { kernel, home: None, script: b"exit 0\n", interactive: false, timeout: Some(timeout) };
    run(machine, &task, io::sink(), io::sink())
}

/// Waits until the command has ended and all its output has arrived.
fn follow(events: &mpsc::Receiver<Event>, streams: usize, deadline: Option<Instant>) -> Outcome {
    let (mut booted, mut status, mut complete) = (false, None, 0);
    loop {
        if let (Some(status), true) = (status, complete == streams) {
            return Outcome::Exited(status);
        }
        let event = match deadline {
            Some(deadline) => events.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Control(line)) => match line.strip_prefix("exit ") {
                Some(number) => status = number.trim().parse().ok(),
                None => booted = true,
            },
            Ok(Event::Stream(End::Complete)) => complete += 1,
            Ok(Event::Stream(End::Unread)) => return Outcome::Unread,
            Ok(Event::Stream(End::Cut)) | Err(RecvTimeoutError::Disconnected) => {
                return Outcome::Gone { booted };
            }
            Ok(Event::Signal(signal)) => return Outcome::Stopped(signal),
            Err(RecvTimeoutError::Timeout) => return Outcome::TimedOut { booted },
        }
    }
}

fn pump(
    from: &std::os::unix::net::UnixStream,
    to: impl Write + Send + 'static,
    token: &str,
    events: &Sender<Event>,
) -> Result<()> {
    let (from, token, events) = (from.try_clone()?, token.to_owned(), events.clone());
    thread::spawn(move || {
        let end = stream::copy(from, to, token.as_bytes());
        // Nobody listens any more once the guest has been given up.
        let _ = events.send(Event::Stream(end));
    });
    Ok(())
}

fn listen(running: &Running, events: Sender<Event>) -> Result<()> {
    let control = running.control.try_clone()?;
    thread::spawn(move || {
        for line in BufReader::new(control).lines().map_while(Result::ok) {
            if events.send(Event::Control(line)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// What QEMU itself said, which matters only when it gave up.
fn show_complaints(stderr: Option<ChildStderr>) {
    let mut text = String::new();
    if let Some(mut stderr) = stderr
        && stderr.read_to_string(&mut text).is_ok()
        && !text.trim().is_empty()
    {
        eprintln!("xtask: QEMU said: {}", text.trim_end());
    }
}

/// Text that no program prints by chance.
fn token() -> Result<String> {
    let mut random = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .context("cannot read /dev/urandom")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(sent: Vec<Event>, timeout: Option<Duration>) -> Outcome {
        let (send, events) = mpsc::channel();
        for event in sent {
            send.send(event).unwrap();
        }
        let _open = timeout.map(|_| send);
        follow(&events, 2, timeout.map(|timeout| Instant::now() + timeout))
    }

    fn control(line: &str) -> Event {
        Event::Control(line.into())
    }

    #[test]
    fn ends_only_when_status_and_all_output_are_there() {
        let end = || Event::Stream(End::Complete);
        assert_eq!(
            followed(vec![control("ready"), end(), control("exit 7"), end()], None),
            Outcome::Exited(7)
        );
        assert_eq!(
            followed(vec![control("ready"), end(), control("exit 7")], None),
            Outcome::Gone { booted: true }
        );
        let soon = Some(Duration::from_millis(1));
        assert_eq!(followed(vec![end(), control("exit 0")], soon), Outcome::TimedOut { booted: false });
        assert_eq!(followed(vec![Event::Stream(End::Unread)], soon), Outcome::Unread);
        assert_eq!(
            followed(vec![control("ready"), Event::Stream(End::Cut)], soon),
            Outcome::Gone { booted: true }
        );
    }
}
