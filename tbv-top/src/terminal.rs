//! The terminal: taken, and given back whatever happens.

use std::{
    io::{self, BufWriter, Stdout, stdout},
    mem::{self, ManuallyDrop},
    panic,
    sync::atomic::{AtomicBool, Ordering},
};

use crossterm::{
    cursor::{Hide, Show},
    execute,
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend};

use crate::{
    app::App,
    draw::{draw, look::Look},
};

/// Room for most pictures; a larger one goes out in parts.
const PICTURE_BYTES: usize = 64 << 10;

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours. Dropping it gives it back, and so does a panic, in whatever thread.
pub(crate) struct Screen {
    /// Not dropped: it would write to a terminal that may be gone, and panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    look: Look,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take(look: Look) -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            // First, so that the message is seen.
            give_back();
            before(what);
        }));
        // Whatever fails from here on, it is given back.
        let terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(
            // A picture goes out at once.
            BufWriter::with_capacity(PICTURE_BYTES, stdout()),
        ))?);
        let screen = Screen { terminal, look };
        enter()?;
        Ok(screen)
    }

    /// Draws the state.
    pub(crate) fn draw(&mut self, app: &App) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            return Err(io::Error::other("a part of tbv-top has failed"));
        }
        self.terminal.draw(|frame| draw(app, self.look, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Forgets what was drawn: all is drawn anew.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        // The one that was drawn is emptied; the other one is empty.
        self.terminal.swap_buffers();
        Ok(())
    }

    /// Takes the terminal anew: someone else has had it.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        give_back();
        enter()?;
        self.forget()
    }

    /// Gives the terminal back and stops this process, until someone lets it go on.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        give_back();
        let stopped = stop();
        self.retake()?;
        stopped
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// What SIGTSTP does by default: the kernel leaves it out where no shell could let the process go on.
fn stop() -> io::Result<()> {
    // SAFETY: all-zero is valid for both: no flag, no signal blocked, the default action. The pointers are to them. Of the
    // signal to ourselves nothing is left to do when the call returns.
    unsafe {
        let (default, mut ours): (libc::sigaction, libc::sigaction) = (mem::zeroed(), mem::zeroed());
        if libc::sigaction(libc::SIGTSTP, &raw const default, &raw mut ours) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::raise(libc::SIGTSTP);
        libc::sigaction(libc::SIGTSTP, &raw const ours, std::ptr::null_mut());
    }
    Ok(())
}

fn enter() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide, Clear(ClearType::All))
}

/// As it was before; nobody is left who could be told of an error.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}
