//! Running a command that must end in time.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// For whatever is not meant to take long: only what hangs takes longer, on the slowest and busiest machine.
pub const LIMIT: Duration = Duration::from_secs(240);

/// How often a running command is looked at.
const POLL: Duration = Duration::from_millis(10);

/// What a command left behind.
#[derive(Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// The status as a shell would give it: 128+n if killed by signal n.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or_default())
    }

    /// The output, if the command succeeded.
    pub fn success(self) -> Result<Self> {
        if !self.status.success() {
            bail!("exit {}\n{}{}", self.code(), self.stdout, self.stderr);
        }
        Ok(self)
    }
}

/// A command on its way, in a process group of its own that is killed when this is dropped.
pub struct Running {
    name: String,
    child: Child,
    stdout: File,
    stderr: File,
}

/// A command from its words.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command.args(words.get(1..).unwrap_or_default());
    command
}

/// Runs `words` to their end; an error if that takes longer than `limit`.
pub fn run(words: &[&str], limit: Duration) -> Result<Output> {
    start(words)?.finish(limit)
}

/// Runs `words`, which must succeed.
pub fn must(words: &[&str]) -> Result<Output> {
    run(words, LIMIT)?.success().with_context(|| words.join(" "))
}

/// Starts `words`.
pub fn start(words: &[&str]) -> Result<Running> {
    let name = words.join(" ");
    let (stdout, stderr) = (temporary_file()?, temporary_file()?);
    let child = command(words)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .spawn()
        .with_context(|| name.clone())?;
    Ok(Running { name, child, stdout, stderr })
}

impl Running {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends `signal` to the command itself, not to its children.
    pub fn signal(&self, signal: libc::c_int) -> Result<()> {
        self.kill(self.pid() as libc::pid_t, signal)
    }

    /// Sends `signal` to the command and its children, as a terminal does.
    pub fn signal_group(&self, signal: libc::c_int) -> Result<()> {
        self.kill(-(self.pid() as libc::pid_t), signal)
    }

    fn kill(&self, target: libc::pid_t, signal: libc::c_int) -> Result<()> {
        // SAFETY: kill has no memory to get wrong, and the child has not been waited for.
        if unsafe { libc::kill(target, signal) } != 0 {
            return Err(std::io::Error::last_os_error()).with_context(|| self.name.clone());
        }
        Ok(())
    }

    /// Standard error so far.
    pub fn stderr(&self) -> Result<String> {
        contents(&self.stderr)
    }

    /// Standard output so far.
    pub fn stdout(&self) -> Result<String> {
        contents(&self.stdout)
    }

    /// Waits for the end; an error if that takes longer than `limit`.
    pub fn finish(mut self, limit: Duration) -> Result<Output> {
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > end {
                let (stdout, stderr) = (self.stdout()?, self.stderr()?);
                bail!("{}: still running after {limit:?}\n{stdout}{stderr}", self.name);
            }
            std::thread::sleep(POLL);
        };
        let (stdout, stderr) = (self.stdout()?, self.stderr()?);
        Ok(Output { status, stdout, stderr })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: kill has no memory to get wrong; the group is the child's own.
        unsafe { libc::kill(-(self.pid() as libc::pid_t), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// Waits until `done` says so; an error if that takes longer than `limit`.
pub fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + limit;
    while !done()? {
        if Instant::now() > end {
            bail!("{what}: not within {limit:?}");
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// All of `file`, read through a descriptor of its own: the command shares this one's position.
fn contents(file: &File) -> Result<String> {
    let bytes = std::fs::read(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn temporary_file() -> Result<File> {
    // SAFETY: the name is a C string; the new descriptor has no other owner.
    unsafe {
        let fd = libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC);
        // Several processes write to it at once: only appending keeps them from each other's lines.
        if fd < 0 || libc::fcntl(fd, libc::F_SETFL, libc::O_APPEND) != 0 {
            return Err(std::io::Error::last_os_error()).context("memfd_create");
        }
        Ok(File::from_raw_fd(fd))
    }
}
