//! Devices, ports, protection domains and asynchronous events.

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::rc::Rc;

use tbv_verbs_sys as sys;

use super::{Cq, Error};

/// How a peer is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// By local identifier, as on InfiniBand.
    Lid,
    /// By the GID with this index, as on Ethernet.
    Gid(u8),
}

/// Where a port can be reached.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub port: u8,
    pub lid: u16,
    pub gid: sys::ibv_gid,
    pub addressing: Addressing,
    /// The port's active MTU, as the enumeration counts (1 = 256 bytes).
    pub mtu: u32,
}

/// Something that happened, and to which object (its address).
pub type Event = (u32, usize);

/// An open device.
pub struct Context {
    pub(super) raw: *mut sys::ibv_context,
    name: String,
}

impl Context {
    /// Opens the device of this name, or the first one.
    pub fn open(wanted: Option<&str>) -> Result<Rc<Self>, Error> {
        let mut count: c_int = 0;
        // SAFETY: the count is writable.
        let list = unsafe { sys::ibv_get_device_list(&raw mut count) };
        if list.is_null() {
            return Err(Error::last("ibv_get_device_list"));
        }
        // SAFETY: the library returned that many devices.
        let devices = unsafe { std::slice::from_raw_parts(list, usize::try_from(count).unwrap_or(0)) };
        // SAFETY: the library terminates names.
        let name = |d: *mut sys::ibv_device| unsafe { CStr::from_ptr((*d).name.as_ptr()) }.to_string_lossy();
        let found: Vec<String> = devices.iter().map(|&d| name(d).into_owned()).collect();
        let index = found.iter().position(|name| wanted.is_none_or(|wanted| wanted == name));
        let opened = match index {
            None => Err(Error::NoDevice { wanted: wanted.map(Into::into), found }),
            // SAFETY: a device of the list, which is freed only afterwards.
            Some(index) => match unsafe { sys::ibv_open_device(devices[index]) } {
                raw if raw.is_null() => Err(Error::last("ibv_open_device")),
                raw => Ok(Rc::new(Self { raw, name: found[index].clone() })),
            },
        };
        // SAFETY: opening took a reference of its own.
        unsafe { sys::ibv_free_device_list(list) };
        opened
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file by which the kernel knows it.
    pub fn fd(&self) -> c_int {
        // SAFETY: an open device.
        unsafe { (*self.raw).cmd_fd }
    }

    /// Closes the device although a queue of it is not destroyed.
    pub fn close_and_forget(self: Rc<Self>, queue: Rc<Cq>) -> Result<(), Error> {
        std::mem::forget(queue);
        // SAFETY: an open device. References to it are leaked with the queue, so nobody closes it again.
        let errno = unsafe { sys::ibv_close_device(self.raw) };
        std::mem::forget(self);
        Error::check("ibv_close_device", errno)
    }

    /// Attributes and limits.
    pub fn attributes(&self) -> Result<sys::ibv_device_attr, Error> {
        // SAFETY: numbers.
        let mut attributes: sys::ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: an open device.
        Error::check("ibv_query_device", unsafe { sys::ibv_query_device(self.raw, &raw mut attributes) })?;
        Ok(attributes)
    }

    /// Address of a port: by the GID of this index, or, without one, as the port's link layer has it.
    pub fn address(&self, port: u8, gid_index: Option<u8>) -> Result<Address, Error> {
        let mut attributes = sys::ibv_port_attr::default();
        // SAFETY: an open device.
        let errno = unsafe { sys::ibv_query_port(self.raw, port, &raw mut attributes) };
        Error::check("ibv_query_port", errno)?;
        if attributes.state != sys::IBV_PORT_ACTIVE {
            let state = attributes.state;
            return Err(Error::Unusable(format!(
                "port {port} of {} is not active (state {state}): connect its cable or bring its link up",
                self.name
            )));
        }
        let addressing = match gid_index {
            Some(index) => Addressing::Gid(index),
            None if attributes.link_layer == sys::IBV_LINK_LAYER_ETHERNET => {
                Addressing::Gid(self.usual_gid(port, attributes.gid_tbl_len)?)
            }
            None if attributes.lid == 0 => {
                return Err(Error::Unusable(format!(
                    "port {port} of {} has no LID: choose a GID (--gid-index)",
                    self.name
                )));
            }
            None => Addressing::Lid,
        };
        let gid = match addressing {
            Addressing::Gid(index) => self.gid(port, index)?,
            Addressing::Lid => [0; 16],
        };
        Ok(Address { port, lid: attributes.lid, gid, addressing, mtu: attributes.active_mtu })
    }

    fn gid(&self, port: u8, index: u8) -> Result<sys::ibv_gid, Error> {
        let mut gid = sys::gid_words::default();
        // SAFETY: an open device.
        if unsafe { sys::ibv_query_gid(self.raw, port, index.into(), &raw mut gid) } != 0 {
            return Err(Error::last("ibv_query_gid"));
        }
        Ok(gid.0)
    }

    /// The GID that programs use on Ethernet: of an IPv4 address if there is one, else the first that isn't empty.
    fn usual_gid(&self, port: u8, entries: c_int) -> Result<u8, Error> {
        let mut first = None;
        for index in 0..u8::try_from(entries).unwrap_or(u8::MAX) {
            let Ok(gid) = self.gid(port, index) else { continue };
            if gid[..12] == *b"\0\0\0\0\0\0\0\0\0\0\xff\xff" {
                return Ok(index);
            }
            if gid != [0; 16] {
                first = first.or(Some(index));
            }
        }
        let none =
            || Error::Unusable(format!("port {port} of {} has no GID: give its link an address", self.name));
        first.ok_or_else(none)
    }

    /// Waits this long for an asynchronous event.
    pub fn event(&self, milliseconds: c_int) -> Result<Option<Event>, Error> {
        // SAFETY: an open device.
        let fd = unsafe { (*self.raw).async_fd };
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        match unsafe { libc::poll(&raw mut poll, 1, milliseconds) } {
            0 => return Ok(None),
            1 => {}
            _ => return Err(Error::last("poll")),
        }
        let mut event = sys::ibv_async_event { element: null_mut(), event_type: 0 };
        // SAFETY: an open device, and an event to read.
        if unsafe { sys::ibv_get_async_event(self.raw, &raw mut event) } != 0 {
            return Err(Error::last("ibv_get_async_event"));
        }
        let told = (event.event_type, event.element as usize);
        // SAFETY: an event that was just got.
        unsafe { sys::ibv_ack_async_event(&raw mut event) };
        Ok(Some(told))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: everything made from it held a reference.
        unsafe { sys::ibv_close_device(self.raw) };
    }
}

/// A protection domain.
pub struct Pd {
    pub(super) raw: *mut sys::ibv_pd,
    pub(super) context: Rc<Context>,
}

impl Pd {
    pub fn new(context: &Rc<Context>) -> Result<Rc<Self>, Error> {
        // SAFETY: an open device.
        let raw = unsafe { sys::ibv_alloc_pd(context.raw) };
        if raw.is_null() {
            return Err(Error::last("ibv_alloc_pd"));
        }
        Ok(Rc::new(Self { raw, context: Rc::clone(context) }))
    }

    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    /// Tries to free it while it is in use; the errno value, 0 if the kernel let it go.
    pub fn try_free_in_use(self: Rc<Self>) -> i32 {
        // SAFETY: a live PD. If the kernel takes it, nothing here may touch it again, and the reference is leaked.
        let errno = unsafe { sys::ibv_dealloc_pd(self.raw) };
        if errno == 0 {
            std::mem::forget(self);
        }
        errno
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: everything made from it held a reference.
        unsafe { sys::ibv_dealloc_pd(self.raw) };
    }
}
