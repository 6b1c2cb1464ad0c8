//! Completion queues.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tbv_verbs_sys as sys;

use super::{Channel, Completion, Context, Error};

/// A completion queue.
pub struct Cq {
    pub(super) raw: *mut sys::ibv_cq,
    context: Rc<Context>,
    /// Outlives the queue.
    _channel: Option<Rc<Channel>>,
}

impl Cq {
    /// A queue for at least this many completions.
    pub fn new(context: &Rc<Context>, entries: c_int) -> Result<Rc<Self>, Error> {
        Self::create(context, entries, None)
    }

    /// A queue that tells its completions to a channel, when it is armed.
    pub fn with_channel(channel: &Rc<Channel>, entries: c_int) -> Result<Rc<Self>, Error> {
        Self::create(channel.context(), entries, Some(channel))
    }

    fn create(
        context: &Rc<Context>,
        entries: c_int,
        channel: Option<&Rc<Channel>>,
    ) -> Result<Rc<Self>, Error> {
        let raw_channel = channel.map_or(null_mut(), |channel| channel.raw);
        // SAFETY: an open device.
        let raw = unsafe { sys::ibv_create_cq(context.raw, entries, null_mut(), raw_channel, 0) };
        if raw.is_null() {
            return Err(Error::last("ibv_create_cq"));
        }
        Ok(Rc::new(Self { raw, context: Rc::clone(context), _channel: channel.map(Rc::clone) }))
    }

    /// What other threads poll it by.
    pub fn poller(&self) -> Poller<'_> {
        Poller { raw: self.raw, _lives: PhantomData }
    }

    /// Tries to destroy it; the errno value. The caller says that it has gone.
    pub fn try_destroy(&self) -> c_int {
        // SAFETY: a live CQ.
        unsafe { sys::ibv_destroy_cq(self.raw) }
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
        self.poller().poll(max)
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

/// A completion queue, for any thread.
#[derive(Clone, Copy)]
pub struct Poller<'a> {
    raw: *mut sys::ibv_cq,
    _lives: PhantomData<&'a Cq>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for Poller<'_> {}
// SAFETY: verbs may be called from several threads at once.
unsafe impl Sync for Poller<'_> {}

impl Poller<'_> {
    /// Asks for an event at the next completion; the errno value.
    pub fn arm(&self) -> c_int {
        // SAFETY: a live CQ.
        unsafe { sys::ibv_req_notify_cq(self.raw, 0) }
    }

    /// Takes up to `max` completions without waiting.
    pub fn poll(&self, max: usize) -> Result<Vec<Completion>, Error> {
        let mut completions = vec![Completion::default(); max];
        let room = c_int::try_from(max).unwrap_or(c_int::MAX);
        // SAFETY: a live CQ, and room for as many.
        match unsafe { sys::ibv_poll_cq(self.raw, room, completions.as_mut_ptr()) } {
            // libibverbs' own functions say no more than that.
            -1 => Err(Error::last("ibv_poll_cq")),
            error @ ..-1 => Err(Error::Verb { verb: "ibv_poll_cq", errno: -error }),
            taken => {
                completions.truncate(taken as usize);
                Ok(completions)
            }
        }
    }
}

/// An extended completion queue.
pub struct Extended {
    raw: *mut sys::ibv_cq_ex,
    /// The same, as an ordinary one, which owns it.
    pub cq: Rc<Cq>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for Extended {}
// SAFETY: a queue that is not for a single thread is locked while one polls it.
unsafe impl Sync for Extended {}

impl Extended {
    /// A queue from which all that is usual can be read.
    pub fn new(context: &Rc<Context>, entries: u32) -> Result<Self, Error> {
        let mut attr = sys::ibv_cq_init_attr_ex {
            cqe: entries,
            cq_context: null_mut(),
            channel: null_mut(),
            comp_vector: 0,
            wc_flags: sys::IBV_WC_STANDARD_FLAGS,
            comp_mask: 0,
            flags: 0,
            parent_domain: null_mut(),
        };
        // SAFETY: an open device.
        let raw = unsafe { sys::ibv_create_cq_ex(context.raw, &raw mut attr) };
        if raw.is_null() {
            return Err(Error::last("ibv_create_cq_ex"));
        }
        Ok(Self { raw, cq: Rc::new(Cq { raw: raw.cast(), context: Rc::clone(context), _channel: None }) })
    }

    /// Takes up to `max` completions, one by one, through the functions of the extended interface.
    pub fn poll(&self, max: usize) -> Result<Vec<Completion>, Error> {
        let mut taken = Vec::new();
        let mut attr = sys::ibv_poll_cq_attr::default();
        let absent = || Error::Unusable("the queue lacks functions of the extended interface".to_owned());
        // SAFETY: a live queue; what is called is what the provider set, while the queue is locked.
        unsafe {
            let cq = &*self.raw;
            let (start, next, end) = (cq.start_poll, cq.next_poll, cq.end_poll);
            let (Some(start), Some(next), Some(end)) = (start, next, end) else { return Err(absent()) };
            let mut error = start(self.raw, &raw mut attr);
            if error != 0 {
                return if error == libc::ENOENT {
                    Ok(taken)
                } else {
                    Error::check("start_poll", error).map(|()| taken)
                };
            }
            while error == 0 {
                match self.current() {
                    Some(completion) => taken.push(completion),
                    None => {
                        end(self.raw);
                        return Err(absent());
                    }
                }
                error = if taken.len() < max { next(self.raw) } else { libc::ENOENT };
            }
            end(self.raw);
            if error == libc::ENOENT { Ok(taken) } else { Error::check("next_poll", error).map(|()| taken) }
        }
    }

    /// The completion that is being looked at.
    ///
    /// # Safety
    /// The queue is locked by this thread and has a current completion.
    unsafe fn current(&self) -> Option<Completion> {
        // SAFETY: as the caller promises.
        unsafe {
            let cq = &*self.raw;
            Some(Completion {
                wr_id: cq.wr_id,
                status: cq.status,
                opcode: cq.read_opcode?(self.raw),
                vendor_err: cq.read_vendor_err?(self.raw),
                byte_len: cq.read_byte_len?(self.raw),
                imm_data: cq.read_imm_data?(self.raw),
                qp_num: cq.read_qp_num?(self.raw),
                src_qp: cq.read_src_qp?(self.raw),
                wc_flags: cq.read_wc_flags?(self.raw),
                pkey_index: 0,
                slid: cq.read_slid?(self.raw) as u16,
                sl: cq.read_sl?(self.raw),
                dlid_path_bits: cq.read_dlid_path_bits?(self.raw),
            })
        }
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
