//! The screen: draws what comes, and passes keys on.

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use crossterm::event::{self, Event};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{sleep, sleep_until, timeout},
};

use crate::{
    app::{App, Effect, Message, Source},
    draw::look::Look,
    exit,
    source::live::{Command, Live},
    terminal::Screen,
};

/// Between two pictures: as fast as eyes are.
const FRAME: Duration = Duration::from_millis(33);
/// How long after an error of the terminal a signal may say that it is gone.
const GONE: Duration = Duration::from_secs(2);
/// Messages that are taken in before the next picture.
const AT_ONCE: usize = 256;

/// What comes from everywhere.
pub(crate) struct News {
    /// To say something.
    pub(crate) send: UnboundedSender<Message>,
    receive: UnboundedReceiver<Message>,
}

impl News {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let (send, receive) = unbounded_channel();
        News { send, receive }
    }
}

impl Default for News {
    fn default() -> Self {
        News::new()
    }
}

/// Signals that are waited for.
struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
    quit: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    fn catch() -> Result<Self> {
        let catch = |kind| signal(kind).context("cannot catch signals");
        Ok(Signals {
            terminate: catch(SignalKind::terminate())?,
            hang_up: catch(SignalKind::hangup())?,
            interrupt: catch(SignalKind::interrupt())?,
            quit: catch(SignalKind::quit())?,
            stop: catch(SignalKind::from_raw(libc::SIGTSTP))?,
            go_on: catch(SignalKind::from_raw(libc::SIGCONT))?,
        })
    }

    /// The next one. Of a terminal that goes, the kernel tells by two at once: SIGHUP, and SIGCONT, which says nothing then.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => libc::SIGTERM,
            _ = self.hang_up.recv() => libc::SIGHUP,
            _ = self.interrupt.recv() => libc::SIGINT,
            _ = self.quit.recv() => libc::SIGQUIT,
            _ = self.stop.recv() => libc::SIGTSTP,
            _ = self.go_on.recv() => libc::SIGCONT,
        }
    }

    /// The next one that ends it.
    async fn next_end(&mut self) -> i32 {
        loop {
            match self.next().await {
                libc::SIGCONT | libc::SIGTSTP => {}
                signal => return signal,
            }
        }
    }
}

/// How it ended.
enum End {
    Asked,
    Signal(i32),
}

/// Shows `app` until someone ends it; `live` is its source, if that is not a recording.
pub(crate) fn run(app: App, live: Option<Live>, news: News, look: Look) -> Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting tokio")?;
    let shown = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let screen = Screen::take(look).context("cannot use the terminal")?;
        let shower = Shower { app, screen, live: live.as_ref(), drawn: Instant::now(), stopped: false };
        match shower.until_end(news, &mut signals).await {
            // A terminal that is gone is told by a signal, too, which says more.
            Err(error) => timeout(GONE, signals.next_end()).await.map(End::Signal).map_err(|_| error),
            end => end,
        }
    });
    // The terminal is given back by now: what is said from here on is seen.
    let collected = live.map_or(Ok(()), Live::end);
    if let Err(error) = &collected
        && error.downcast_ref::<crate::source::live::Panicked>().is_some()
    {
        exit::say(&error.to_string());
        return Ok(ExitCode::from(exit::PANICKED));
    }
    collected?;
    Ok(match shown? {
        End::Asked => ExitCode::SUCCESS,
        End::Signal(signal) => exit::by_signal(signal),
    })
}

/// Reads keys in a thread of its own.
fn read_keys(to: UnboundedSender<Message>) {
    thread::spawn(move || {
        loop {
            let message = match event::read() {
                Ok(Event::Key(key)) => Message::Key(key),
                Ok(Event::Resize(columns, rows)) => Message::Resized(columns, rows),
                Ok(_) => continue,
                // The terminal has gone. A signal says more about that, and is to come first.
                Err(_) => {
                    thread::sleep(GONE);
                    Message::Ended
                }
            };
            let last = matches!(message, Message::Ended);
            if to.send(message).is_err() || last {
                break;
            }
        }
    });
}

struct Shower<'a> {
    app: App,
    screen: Screen,
    live: Option<&'a Live>,
    drawn: Instant,
    /// Whether it was stopped a moment ago.
    stopped: bool,
}

impl Shower<'_> {
    async fn until_end(mut self, mut news: News, signals: &mut Signals) -> Result<End> {
        self.app.size = self.screen.size()?;
        read_keys(news.send.clone());
        self.draw()?;
        let (mut changed, mut passed) = (false, Instant::now());
        loop {
            let playing = matches!(&self.app.source, Source::Replay(player) if player.playing);
            tokio::select! {
                biased;
                signal = signals.next() => match signal {
                    libc::SIGTSTP => {
                        self.suspend()?;
                        changed = true;
                    }
                    libc::SIGCONT => {
                        self.screen.retake()?;
                        changed = true;
                    }
                    signal => return Ok(End::Signal(signal)),
                },
                () = sleep_until((self.drawn + FRAME).into()), if changed => {
                    self.draw()?;
                    changed = false;
                }
                message = news.receive.recv() => {
                    let mut message = message;
                    for _ in 0..AT_ONCE {
                        let Some(one) = message.take() else { break };
                        if self.take_in(one)? {
                            return Ok(End::Asked);
                        }
                        message = news.receive.try_recv().ok();
                    }
                    if let Some(left) = message
                        && self.take_in(left)?
                    {
                        return Ok(End::Asked);
                    }
                    changed = true;
                }
                () = sleep(FRAME), if playing => {
                    self.app.update(Message::Passed(passed.elapsed()));
                    passed = Instant::now();
                    changed = true;
                }
            }
            // While it does not play, or is stopped, no time passes for it.
            if !playing || std::mem::take(&mut self.stopped) {
                passed = Instant::now();
            }
        }
    }

    fn suspend(&mut self) -> Result<()> {
        self.stopped = true;
        Ok(self.screen.suspend()?)
    }

    fn draw(&mut self) -> Result<()> {
        injected_panic();
        self.screen.draw(&self.app).context("cannot draw")?;
        self.drawn = Instant::now();
        Ok(())
    }

    /// Whether that was the end.
    fn take_in(&mut self, message: Message) -> Result<bool> {
        for effect in self.app.update(message) {
            let command = match effect {
                Effect::Quit => return Ok(true),
                Effect::Suspend => {
                    self.suspend()?;
                    continue;
                }
                Effect::Redraw => {
                    self.screen.forget()?;
                    continue;
                }
                Effect::Interval(interval) => Command::Interval(interval),
                Effect::LetGo => Command::LetGo,
                Effect::Attach => Command::Attach,
                Effect::Record(begin) => Command::Record(begin),
                Effect::Stream(pid) => Command::Stream(pid),
            };
            if let Some(live) = self.live {
                live.tell(command);
            }
        }
        Ok(false)
    }
}

/// For the tests of what a panic leaves of the terminal: only in builds for development, and if asked for.
fn injected_panic() {
    #[cfg(debug_assertions)]
    if std::env::var_os("TBV_TOP_PANIC").is_some() {
        static PICTURES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        // Not at the first picture: the terminal is to be in use.
        let drawn = PICTURES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(drawn < 3, "injected");
    }
}
