//! Completion queues.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tbv_verbs_sys as sys;

use super::{Completion, Context, Error};

/// A completion queue, polled.
pub struct Cq {
    pub(super) raw: *mut sys::ibv_cq,
    context: Rc<Context>,
}

impl Cq {
    /// A queue for at least this many completions.
    pub fn new(context: &Rc<Context>, entries: c_int) -> Result<Rc<Self>, Error> {
        // SAFETY: an open device.
        let raw = unsafe { sys::ibv_create_cq(context.raw, entries, null_mut(), null_mut(), 0) };
        if raw.is_null() {
            return Err(Error::last("ibv_create_cq"));
        }
        Ok(Rc::new(Self { raw, context: Rc::clone(context) }))
    }

    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    /// Completions that it holds.
    pub fn capacity(&self) -> usize {
        // SAFETY: a live CQ.
        usize::try_from(unsafe { (*self.raw).cqe }).unwrap_or(0)
    }

    /// The object by which events name it.
    pub fn id(&self) -> usize {
        self.raw as usize
    }

    /// Takes up to `max` completions without waiting.
    pub fn poll(&self, max: usize) -> Result<Vec<Completion>, Error> {
        let mut completions = vec![Completion::default(); max];
        let room = c_int::try_from(max).unwrap_or(c_int::MAX);
        // SAFETY: a live CQ, and room for as many.
        let taken = unsafe { sys::ibv_poll_cq(self.raw, room, completions.as_mut_ptr()) };
        let taken = usize::try_from(taken).map_err(|_| Error::last("ibv_poll_cq"))?;
        completions.truncate(taken);
        Ok(completions)
    }

    /// Waits for the next completion; `None` if there is none for so long.
    pub fn wait(&self, patience: Duration) -> Result<Option<Completion>, Error> {
        let mut idle = Idle::new(patience);
        loop {
            if let Some(completion) = self.poll(1)?.pop() {
                return Ok(Some(completion));
            }
            if idle.is_over(false) {
                return Ok(None);
            }
        }
    }

    /// Tries to destroy it while it is in use; the errno value, 0 if the kernel let it go.
    pub fn try_destroy_in_use(self: Rc<Self>) -> i32 {
        // SAFETY: a live CQ. If the kernel takes it, nothing here may touch it again, and the reference is leaked.
        let errno = unsafe { sys::ibv_destroy_cq(self.raw) };
        if errno == 0 {
            std::mem::forget(self);
        }
        errno
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: queue pairs that use it held a reference.
        unsafe { sys::ibv_destroy_cq(self.raw) };
    }
}

/// How long nothing has happened in a polling loop.
pub struct Idle {
    patience: Duration,
    since: Instant,
    polls: u32,
}

impl Idle {
    pub fn new(patience: Duration) -> Self {
        Self { patience, since: Instant::now(), polls: 0 }
    }

    /// Told whether the last round brought anything; lets others run if not. Whether patience is over.
    pub fn is_over(&mut self, progress: bool) -> bool {
        if progress {
            *self = Self::new(self.patience);
            return false;
        }
        // The device may need this CPU: a driver in software does.
        self.polls = self.polls.saturating_add(1);
        if self.polls < 64 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.since.elapsed() >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_renews_patience() {
        let mut idle = Idle::new(Duration::from_millis(20));
        assert!(!idle.is_over(false));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!idle.is_over(true));
        assert!(!idle.is_over(false));
        std::thread::sleep(Duration::from_millis(30));
        assert!(idle.is_over(false));
    }
}
