//! Completion channels.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::rc::Rc;

use tbv_verbs_sys as sys;

use super::{Context, Error};

/// Where armed completion queues tell that they have something.
pub struct Channel {
    pub(super) raw: *mut sys::ibv_comp_channel,
    context: Rc<Context>,
}

impl Channel {
    pub fn new(context: &Rc<Context>) -> Result<Rc<Self>, Error> {
        // SAFETY: an open device.
        let raw = unsafe { sys::ibv_create_comp_channel(context.raw) };
        if raw.is_null() {
            return Err(Error::last("ibv_create_comp_channel"));
        }
        Ok(Rc::new(Self { raw, context: Rc::clone(context) }))
    }

    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    /// What another thread waits by.
    pub fn waiter(&self) -> Waiter<'_> {
        Waiter { raw: self.raw, _lives: PhantomData }
    }
}

/// A completion channel, for any thread.
#[derive(Clone, Copy)]
pub struct Waiter<'a> {
    raw: *mut sys::ibv_comp_channel,
    _lives: PhantomData<&'a Channel>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for Waiter<'_> {}
// SAFETY: verbs may be called from several threads at once.
unsafe impl Sync for Waiter<'_> {}

impl Waiter<'_> {
    /// Waits this long for an event and acknowledges it; whether one came.
    pub fn wait(&self, milliseconds: c_int) -> Result<bool, Error> {
        // SAFETY: a live channel.
        let fd = unsafe { (*self.raw).fd };
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        match unsafe { libc::poll(&raw mut poll, 1, milliseconds) } {
            0 => return Ok(false),
            1 => {}
            _ => return Err(Error::last("poll")),
        }
        let (mut cq, mut context) = (null_mut(), null_mut());
        // SAFETY: a live channel, and room for what it tells.
        unsafe {
            if sys::ibv_get_cq_event(self.raw, &raw mut cq, &raw mut context) != 0 {
                return Err(Error::last("ibv_get_cq_event"));
            }
            sys::ibv_ack_cq_events(cq, 1);
        }
        Ok(true)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: queues that use it held a reference.
        unsafe { sys::ibv_destroy_comp_channel(self.raw) };
    }
}
