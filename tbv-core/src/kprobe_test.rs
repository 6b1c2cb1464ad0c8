//! Whether kprobes work here, by trying one: counting hits needs no eBPF program. A kernel whose kprobes are
//! switched off takes them all the same. They never fire, and a hook that used them would count nothing and
//! know of no loss.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::fd::{FromRawFd as _, OwnedFd},
    path::Path,
};

use aya_obj::generated::perf_event_attr;

const TYPE: &str = "sys/bus/event_source/devices/kprobe/type";
/// A function of the kernel that nobody calls but who wants to, and the system call that does.
const FUNCTION: &std::ffi::CStr = c"__x64_sys_getppid";
const CALLED: libc::c_long = libc::SYS_getppid;
/// Where in it, in the order tried: behind the call that belongs to the function tracer, with endbr64 before it and
/// without. There a kprobe does without the tracer, which may be in a bad state (see `obstacles`) that the trial
/// would make worse. Its begin is the last resort.
const OFFSETS: [u64; 3] = [9, 5, 0];
/// `PERF_FLAG_FD_CLOEXEC` (linux/perf_event.h).
const CLOEXEC: libc::c_ulong = 8;

/// What keeps kprobes from working.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The kernel has none, or sysfs doesn't show them.
    Absent,
    /// perf_event_open(2) refused.
    Refused(io::Error),
    /// It was attached, and did not see a call.
    Silent,
}

/// Attaches a kprobe for a moment.
pub(crate) fn try_one(root: &Path) -> Result<(), Broken> {
    let kind = fs::read_to_string(root.join(TYPE)).ok().and_then(|text| text.trim().parse().ok());
    let kind = kind.ok_or(Broken::Absent)?;
    let mut counter = OFFSETS
        .into_iter()
        .map(|offset| open(kind, offset))
        // What the kernel says of an offset inside of an instruction.
        .find(|opened| !opened.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::EILSEQ)))
        .unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::EILSEQ)))
        .map_err(Broken::Refused)?;
    // SAFETY: takes no arguments. Not libc's function, which may remember an answer.
    unsafe { libc::syscall(CALLED) };
    let mut hits = [0; 8];
    counter.read_exact(&mut hits).map_err(Broken::Refused)?;
    if u64::from_ne_bytes(hits) == 0 { Err(Broken::Silent) } else { Ok(()) }
}

/// A counter of how often this thread passes that offset.
fn open(kind: u32, offset: u64) -> io::Result<File> {
    // SAFETY: a C structure of integers, for which all-zero is valid.
    let mut attr: perf_event_attr = unsafe { std::mem::zeroed() };
    attr.type_ = kind;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.__bindgen_anon_3.kprobe_func = FUNCTION.as_ptr() as u64;
    attr.__bindgen_anon_4.probe_offset = offset;
    // SAFETY: `attr` and the name that it points to outlive the call.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, 0, -1, -1, CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was made for us alone.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_them_is_told() {
        assert!(matches!(try_one(Path::new("/no/such/root")), Err(Broken::Absent)));
    }
}
