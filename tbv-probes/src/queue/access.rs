//! What a process may do with the memory of a published queue, and what not.

use std::fs;
use std::ptr::null_mut;

use super::must;
use crate::pair::Ports;
use crate::verbs::{Cq, Error, errno_name};

/// One mapping of the device's file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    pub(crate) address: usize,
    pub(crate) length: usize,
    pub(crate) offset: i64,
    pub(crate) writable: bool,
}

/// Every mapping of a device's file in this process.
pub(crate) fn mappings() -> Result<Vec<Shared>, Error> {
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|e| Error::Unusable(format!("/proc/self/maps: {e}")))?;
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
        let (from, to) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let (address, end) = (number(from)?, number(to)?);
        Some(Shared {
            address,
            length: end - address,
            offset: number(offset)? as i64,
            writable: rights.contains('w'),
        })
    };
    Ok(maps.lines().filter(|line| line.contains("/dev/infiniband/uverbs")).filter_map(parse).collect())
}

/// The ring and the consumer page of the only queue.
pub(crate) fn ring_and_page() -> Result<[Shared; 2], Error> {
    let found = mappings()?;
    let one = |writable| found.iter().copied().find(|shared| shared.writable == writable);
    match (found.len(), one(false), one(true)) {
        (2, Some(ring), Some(page)) => Ok([ring, page]),
        _ => Err(Error::Wrong(format!("not one ring and one page: {found:x?}"))),
    }
}

/// Tries everything that is not allowed, and that what is allowed works.
pub fn access(ports: &Ports, cqe: u32) -> Result<String, Error> {
    let queue = Cq::new(&ports.contexts[0], cqe as i32)?;
    let fd = queue.context().fd();
    let [ring, page] = ring_and_page()?;
    let (read, write, execute) = (libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC);
    let map = |length, protection, kind, offset| {
        // SAFETY: a new mapping, or none; it is not used.
        unsafe {
            let address = libc::mmap(null_mut(), length, protection, kind, fd, offset);
            if address == libc::MAP_FAILED {
                return *libc::__errno_location();
            }
            libc::munmap(address, length);
            0
        }
    };
    let protect = |shared: Shared, protection| {
        // SAFETY: adds rights to a mapping of ours, or fails.
        unsafe {
            if libc::mprotect(shared.address as *mut _, shared.length, protection) == 0 {
                0
            } else {
                *libc::__errno_location()
            }
        }
    };
    // A ring of one page cannot be shorter: the kernel rounds up.
    let shorter = if ring.length > 4096 { ring.length - 4096 } else { 3 * 4096 };
    // A ring of one page has no inside: behind it is the next mapping.
    let inside = if ring.length > 4096 { ring.offset + 4096 } else { ring.offset + (1 << 33) };
    let (shared, private) = (libc::MAP_SHARED, libc::MAP_PRIVATE);
    let tries = [
        ("ring mapped again", map(ring.length, read, shared, ring.offset), 0),
        ("page mapped again", map(page.length, read | write, shared, page.offset), 0),
        ("ring mapped writable", map(ring.length, read | write, shared, ring.offset), libc::EPERM),
        ("ring mapped executable", map(ring.length, read | execute, shared, ring.offset), libc::EPERM),
        ("page mapped executable", map(page.length, read | execute, shared, page.offset), libc::EPERM),
        ("ring mapped privately", map(ring.length, read, private, ring.offset), libc::EINVAL),
        ("ring mapped too short", map(shorter, read, shared, ring.offset), libc::EINVAL),
        ("ring mapped too long", map(ring.length + 4096, read, shared, ring.offset), libc::EINVAL),
        ("page mapped too long", map(2 * page.length, read | write, shared, page.offset), libc::EINVAL),
        ("mapped where nothing is", map(page.length, read, shared, page.offset + (1 << 32)), libc::EINVAL),
        ("mapped inside of the ring", map(ring.length, read, shared, inside), libc::EINVAL),
        ("ring made writable", protect(ring, read | write), libc::EACCES),
        ("ring made executable", protect(ring, read | execute), libc::EACCES),
        ("page made executable", protect(page, read | execute), libc::EACCES),
    ];
    for (what, errno, expected) in tries {
        must(errno == expected, || format!("{what}: {}, not {}", errno_name(errno), errno_name(expected)))?;
    }
    Ok(format!("tries={} ring_bytes={}", tries.len(), ring.length))
}

/// Writes into the ring, which must kill this process.
pub fn write_ring(ports: &Ports) -> Result<String, Error> {
    let _queue = Cq::new(&ports.contexts[0], 16)?;
    let [ring, _] = ring_and_page()?;
    println!("writing");
    // SAFETY: none: this is meant to fault.
    unsafe { (ring.address as *mut u64).write_volatile(1) };
    Err(Error::Wrong("the ring could be written".to_owned()))
}
