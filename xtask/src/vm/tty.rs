//! The caller's terminal while it belongs to the guest.

use std::{
    fs::File,
    io::{self, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
    sync::mpsc::Sender,
    thread,
};

use anyhow::{Context, Result, bail};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH},
    iterator::Signals,
};

use super::guest::Event;

/// Keys go to the guest as they are, Ctrl-C too. Dropping it gives the terminal back.
pub(super) struct RawTerminal(libc::termios);

impl RawTerminal {
    pub(super) fn enter() -> Result<Self> {
        let mut saved = MaybeUninit::uninit();
        // SAFETY: tcgetattr fills the structure it is given, which is checked before use.
        if unsafe { libc::tcgetattr(libc::STDIN_FILENO, saved.as_mut_ptr()) } != 0 {
            bail!("-it needs a terminal, and stdin is none; leave -it out");
        }
        // SAFETY: tcgetattr succeeded.
        let saved: libc::termios = unsafe { saved.assume_init() };
        let mut raw = saved;
        // SAFETY: the structure is valid; cfmakeraw only changes it.
        unsafe { libc::cfmakeraw(&raw mut raw) };
        set(&raw).context("cannot make the terminal raw")?;
        Ok(Self(saved))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // The terminal may be gone; then there is nothing to give back.
        let _ = set(&self.0);
    }
}

fn set(to: &libc::termios) -> io::Result<()> {
    // SAFETY: the structure is valid and only read.
    match unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSAFLUSH, to) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Rows and columns of the caller's terminal.
pub(super) fn size() -> (u16, u16) {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: TIOCGWINSZ fills the structure; if it fails, the zeros are a valid value.
    let size = unsafe {
        libc::ioctl(libc::STDIN_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr());
        size.assume_init()
    };
    match (size.ws_row, size.ws_col) {
        (0, _) | (_, 0) => (24, 80),
        known => known,
    }
}

/// Passes keys to the guest's terminal and changes of size to its control port, and reports
/// signals that mean to stop. The threads end with the process.
pub(super) fn forward(
    mut terminal: UnixStream,
    mut control: UnixStream,
    events: Sender<Event>,
) -> Result<()> {
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM, SIGWINCH]).context("cannot handle the terminal's signals")?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGWINCH {
                let _ = events.send(Event::Signal(signal));
                return;
            }
            let (rows, columns) = size();
            let _ = writeln!(control, "{rows} {columns}");
        }
    });
    let mut keys = keyboard().context("cannot read the terminal")?;
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = keys.read(&mut buffer) {
            if terminal.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Stdin without std's buffer and lock.
fn keyboard() -> io::Result<File> {
    let stdin = io::stdin();
    debug_assert_eq!(stdin.as_raw_fd(), libc::STDIN_FILENO);
    Ok(File::from(stdin.as_fd().try_clone_to_owned()?))
}
