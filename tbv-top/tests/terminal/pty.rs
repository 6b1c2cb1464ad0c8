//! A pseudo-terminal with a program in it.

use std::{
    ffi::CString,
    fs::File,
    io::{Read as _, Write as _},
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// For what a busy machine may take long for.
const LIMIT: Duration = Duration::from_secs(240);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Exited(i32),
    Signalled(i32),
}

/// The terminal and its program.
pub(crate) struct Pty {
    controller: Option<File>,
    /// Held open, so that its settings can be read when the program has ended.
    terminal: OwnedFd,
    pid: libc::pid_t,
    output: Arc<Mutex<Vec<u8>>>,
    /// Ends reading.
    gone: Arc<AtomicBool>,
    before: String,
    ended: bool,
}

impl Pty {
    /// Starts a program with these variables besides those of a plain terminal.
    pub(crate) fn start(program: &str, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let (mut controller, mut terminal) = (-1, -1);
        let size = libc::winsize { ws_row: 40, ws_col: 132, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: both descriptors are written to; no name and the usual settings are asked for.
        let made = unsafe {
            libc::openpty(
                &raw mut controller,
                &raw mut terminal,
                std::ptr::null_mut(),
                std::ptr::null(),
                &raw const size,
            )
        };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: they were made for us alone.
        let (controller, terminal) =
            unsafe { (File::from_raw_fd(controller), OwnedFd::from_raw_fd(terminal)) };
        // What the child needs is made here: after fork it may not allocate.
        let text = |text: &str| CString::new(text).unwrap();
        let words: Vec<CString> = std::iter::once(&program).chain(words).map(|word| text(word)).collect();
        let usual = [("TERM", "xterm-256color"), ("LANG", "C.UTF-8")];
        let given = |name: &str| variables.iter().any(|(other, _)| *other == name);
        let usual = usual.into_iter().filter(|(name, _)| !given(name));
        let variables: Vec<CString> = usual
            .chain(variables.iter().copied())
            .map(|(name, value)| text(&format!("{name}={value}")))
            .collect();
        let pointers = |all: &[CString]| -> Vec<*const libc::c_char> {
            all.iter().map(|one| one.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argv, envp) = (pointers(&words), pointers(&variables));
        // SAFETY: the child only makes system calls until it becomes the program.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "{}", std::io::Error::last_os_error());
        if pid == 0 {
            // SAFETY: as above; all pointers outlive the call.
            unsafe {
                libc::setsid();
                libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0);
                for fd in 0..3 {
                    libc::dup2(terminal.as_raw_fd(), fd);
                }
                libc::close(controller.as_raw_fd());
                libc::execve(argv[0], argv.as_ptr(), envp.as_ptr());
                libc::_exit(127);
            }
        }
        let before = settings(&terminal);
        let output = Arc::new(Mutex::new(Vec::new()));
        let gone = Arc::new(AtomicBool::new(false));
        let (to, mut from, over) = (output.clone(), controller.try_clone().unwrap(), gone.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !over.load(Ordering::SeqCst) {
                let mut asked = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one descriptor, which is open.
                if unsafe { libc::poll(&raw mut asked, 1, 50) } == 0 {
                    continue;
                }
                let Ok(count @ 1..) = from.read(&mut bytes) else { break };
                to.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Pty { controller: Some(controller), terminal, pid, output, gone, before, ended: false }
    }

    /// Takes the terminal away, as closing its window does.
    pub(crate) fn hang_up(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        self.controller = None;
    }

    /// All that was written to the terminal.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    /// The end of it, for messages.
    fn last(&self) -> String {
        let output = self.output();
        output.chars().skip(output.chars().count().saturating_sub(5_000)).collect()
    }

    /// Waits until something was written.
    pub(crate) fn wait_for(&self, what: &str) {
        self.wait(what, || self.output().contains(what));
    }

    /// Waits until something comes that was not there at `from`.
    pub(crate) fn wait_for_after(&self, from: usize, what: &str) {
        self.wait(what, || self.output().get(from..).is_some_and(|new| new.contains(what)));
    }

    /// Waits until a word is on the screen. Only what changes is written, so all is asked for again and again.
    pub(crate) fn wait_for_word(&mut self, word: &str) {
        let begin = Instant::now();
        loop {
            let from = self.output().len();
            self.press("\u{c}");
            thread::sleep(Duration::from_millis(150));
            if self.output().get(from..).is_some_and(|new| new.contains(word)) {
                break;
            }
            assert!(begin.elapsed() < LIMIT, "{word:?} is not shown; there is {:?}", self.last());
        }
    }

    fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let begin = Instant::now();
        while !done() {
            assert!(begin.elapsed() < LIMIT, "{what:?} does not come; there is {:?}", self.last());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.controller.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the size is valid for as long as the call takes.
        let done = unsafe { libc::ioctl(self.terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(done, 0);
    }

    /// The program's process id.
    pub(crate) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: to our own child, which is not reaped yet.
        assert_eq!(unsafe { libc::kill(self.pid, signal) }, 0);
    }

    /// Waits until the program ends.
    pub(crate) fn status(&mut self) -> Status {
        let begin = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: our own child.
            let pid = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) };
            if pid == self.pid {
                self.ended = true;
                return match libc::WIFEXITED(status) {
                    true => Status::Exited(libc::WEXITSTATUS(status)),
                    false => Status::Signalled(libc::WTERMSIG(status)),
                };
            }
            assert!(begin.elapsed() < LIMIT, "it does not end; there is {:?}", self.last());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the terminal is as it was before: its settings, the cursor, the screen.
    pub(crate) fn assert_restored(&self) {
        assert_eq!(settings(&self.terminal), self.before, "the settings of the terminal");
        // What was written last may be still on its way.
        for (on, off) in [("\u{1b}[?1049h", "\u{1b}[?1049l"), ("\u{1b}[?25l", "\u{1b}[?25h")] {
            self.wait(off, || {
                let output = self.output();
                let (on, off) = (output.rfind(on), output.rfind(off));
                on.is_some() && off > on
            });
        }
    }

    /// Whether the terminal is in use, without line editing and echo.
    pub(crate) fn is_raw(&self) -> bool {
        settings(&self.terminal) != self.before
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: our own child, which is not reaped yet.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

fn settings(terminal: &OwnedFd) -> String {
    // SAFETY: all-zero is a valid termios, which is filled in.
    let settings = unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings), 0);
        settings
    };
    format!("{:x} {:x} {:x} {:x}", settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag)
}
