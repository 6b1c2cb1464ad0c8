//! An open device.

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_void};
use std::io::Write as _;
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::Mutex;

use tbv_proto::AllocUcontextResp;
use tbv_verbs_sys::{ibv_context, ibv_device, ibv_port_attr, verbs_context};

use crate::abi::{
    _verbs_init_and_alloc_context, RDMA_DRIVER_UNKNOWN, ib_uverbs_ex_query_device_resp,
    ib_uverbs_get_context_resp, ibv_cmd_get_context, ibv_cmd_query_device_any, ibv_cmd_query_port,
    ibv_get_context, ibv_query_port, verbs_context_ops, verbs_set_ops, verbs_uninit_context,
};
use crate::{cq, errno, extended, memory, mr, pd, qp, version};

/// An open device.
#[repr(C)]
pub(crate) struct Context {
    verbs: verbs_context,
    /// Completion queues that are not destroyed, by address.
    pub(crate) queues: Mutex<BTreeSet<usize>>,
}

impl Context {
    /// # Safety
    /// `context` is live and of [`alloc_context`].
    pub(crate) unsafe fn of<'a>(context: *mut ibv_context) -> &'a Self {
        // SAFETY: it lies in the verbs_context with which a Context begins.
        unsafe { &*context.byte_sub(offset_of!(verbs_context, context)).cast() }
    }
}

/// Our verbs.
static OPS: verbs_context_ops = verbs_context_ops {
    alloc_pd: Some(pd::alloc_pd),
    create_cq: Some(cq::create_cq),
    create_cq_ex: Some(extended::create_cq_ex),
    create_qp: Some(qp::create_qp),
    dealloc_pd: Some(pd::dealloc_pd),
    dereg_mr: Some(mr::dereg_mr),
    destroy_cq: Some(cq::destroy_cq),
    destroy_qp: Some(qp::destroy_qp),
    free_context: Some(free_context),
    modify_qp: Some(qp::modify_qp),
    poll_cq: Some(cq::poll_cq),
    post_recv: Some(qp::post_recv),
    post_send: Some(qp::post_send),
    query_device_ex: Some(query_device_ex),
    query_port: Some(query_port),
    query_qp: Some(qp::query_qp),
    reg_mr: Some(mr::reg_mr),
    req_notify_cq: Some(cq::req_notify_cq),
    ..verbs_context_ops::NONE
};

/// The reply to GET_CONTEXT with our driver's part behind the standard one.
#[repr(C)]
struct GetContextResp {
    core: ib_uverbs_get_context_resp,
    driver: AllocUcontextResp,
}

/// Opens the device. Owns `cmd_fd`, also if it fails.
pub(crate) unsafe extern "C" fn alloc_context(
    device: *mut ibv_device,
    cmd_fd: c_int,
    _private: *mut c_void,
) -> *mut verbs_context {
    // Here libibverbs probes whether the kernel takes write commands by ioctl, and stays with the answer. The driver
    // number must be the kernel's, or the probe and everything after it is refused.
    // SAFETY: the verbs are at the start of the allocation, so their offset is 0; the device is live.
    let context = unsafe {
        let size = size_of::<Context>();
        _verbs_init_and_alloc_context(device, cmd_fd, size, null_mut(), RDMA_DRIVER_UNKNOWN)
    }
    .cast::<Context>();
    if context.is_null() {
        return null_mut();
    }
    // SAFETY: allocated above, with zeros here.
    let context = unsafe {
        (&raw mut (*context).queues).write(Mutex::default());
        &raw mut (*context).verbs
    };
    // SAFETY: a context that has just been initialised.
    match unsafe { open(context) } {
        0 => context,
        error => {
            // SAFETY: nobody else has seen it yet.
            unsafe { release(context) };
            errno::fail(error)
        }
    }
}

/// Asks the kernel for the context and installs the verbs; returns an errno value.
///
/// # Safety
/// `context` is initialised and unused.
unsafe fn open(context: *mut verbs_context) -> c_int {
    let mut cmd = ibv_get_context::ZERO;
    let mut resp =
        GetContextResp { core: ib_uverbs_get_context_resp::ZERO, driver: AllocUcontextResp::default() };
    let size = size_of_val(&resp);
    // SAFETY: request and reply are large enough for the sizes given. The pointer to the core part is made from the
    // whole reply, so that it may be written behind its end.
    let error = unsafe {
        ibv_cmd_get_context(context, &raw mut cmd, size_of_val(&cmd), (&raw mut resp).cast(), size)
    };
    if error != 0 {
        return error;
    }
    // Zero: a module that doesn't say. libibverbs compared the version when it listed the device, but the module may
    // have been exchanged since.
    let spoken = resp.driver.uverbs_abi_version;
    if spoken != 0 && spoken != version::OPENED {
        // As libibverbs warns of a version that it finds when it lists the device. Its own log is off unless asked
        // for, and without the message nobody knows what to do.
        let _ = writeln!(
            std::io::stderr(),
            "usb4_rdma: the kernel module speaks ABI {spoken} and this provider {}: install matching versions",
            version::OPENED
        );
        return libc::EPROTONOSUPPORT;
    }
    // SAFETY: the verbs are a static.
    unsafe { verbs_set_ops(context, &raw const OPS) };
    0
}

/// Closes the file and frees the context.
///
/// # Safety
/// Nothing uses it any more.
unsafe fn release(context: *mut verbs_context) {
    // SAFETY: initialised by alloc_context, which also allocated it.
    unsafe {
        verbs_uninit_context(context);
        memory::free(context);
    }
}

unsafe extern "C" fn free_context(context: *mut ibv_context) {
    // SAFETY: a context of alloc_context, which lies inside a verbs_context; the application gives it up.
    unsafe {
        cq::unmap_all(context);
        release(context.byte_sub(offset_of!(verbs_context, context)).cast());
    }
}

unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const c_void,
    attr: *mut c_void,
    attr_size: usize,
) -> c_int {
    let mut resp = ib_uverbs_ex_query_device_resp::ZERO;
    let mut size = size_of_val(&resp);
    // SAFETY: the caller's arguments, and a response of the size given.
    let error =
        unsafe { ibv_cmd_query_device_any(context, input, attr, attr_size, &raw mut resp, &raw mut size) };
    if error == 0 {
        // SAFETY: both the attributes and the extended ones begin with fw_ver, an array of 64 characters.
        unsafe { print_version(attr.cast(), resp.fw_ver) };
    }
    error
}

/// Prints the firmware version, which the kernel gives as one number.
///
/// # Safety
/// `text` has room for 64 characters.
unsafe fn print_version(text: *mut c_char, version: u64) {
    let (major, minor, micro) = (version >> 32, version >> 16 & 0xffff, version & 0xffff);
    // SAFETY: bounded by the size given, and the conversions fit the arguments.
    unsafe { libc::snprintf(text, 64, c"%llu.%llu.%llu".as_ptr(), major, minor, micro) };
}

unsafe extern "C" fn query_port(context: *mut ibv_context, port_num: u8, attr: *mut ibv_port_attr) -> c_int {
    let mut cmd = ibv_query_port::ZERO;
    // SAFETY: the caller's arguments, and a request of the size given.
    unsafe { ibv_cmd_query_port(context, port_num, attr, &raw mut cmd, size_of_val(&cmd)) }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    #[test]
    fn a_version_is_three_numbers() {
        let mut text = [0; 64];
        // SAFETY: 64 characters.
        unsafe { super::print_version(text.as_mut_ptr(), 0x0000_0001_0002_0003) };
        // SAFETY: printed and terminated.
        assert_eq!(unsafe { CStr::from_ptr(text.as_ptr()) }, c"1.2.3");
        // SAFETY: 64 characters.
        unsafe { super::print_version(text.as_mut_ptr(), u64::MAX) };
        // SAFETY: printed and terminated.
        assert_eq!(unsafe { CStr::from_ptr(text.as_ptr()) }, c"4294967295.65535.65535");
    }
}
