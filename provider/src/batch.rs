//! Commands of bounded size.
//!
//! An ioctl attribute holds at most 64 KiB, and libibverbs builds post commands on the stack. So a long list of work
//! requests is posted in several commands, and many completions are polled in several.

use std::ffi::c_int;
use std::mem::replace;
use std::ptr::null_mut;

use tbv_verbs_sys::{ibv_recv_wr, ibv_send_wr};

/// Bytes of requests and scatter/gather entries in one post command; a single larger request is still one command.
const POST_BYTES: usize = 32 * 1024;

/// Completions in one poll command, of 48 bytes each.
const POLL_ENTRIES: c_int = 1024;

/// A work request as an element of a list.
pub(crate) trait WorkRequest: Sized {
    /// Bytes that it takes in a command without its scatter/gather entries.
    const BYTES: usize;
    fn next(&mut self) -> &mut *mut Self;
    fn num_sge(&self) -> usize;
}

impl WorkRequest for ibv_send_wr {
    const BYTES: usize = 56;
    fn next(&mut self) -> &mut *mut Self {
        &mut self.next
    }
    fn num_sge(&self) -> usize {
        usize::try_from(self.num_sge).unwrap_or(0)
    }
}

impl WorkRequest for ibv_recv_wr {
    const BYTES: usize = 16;
    fn next(&mut self) -> &mut *mut Self {
        &mut self.next
    }
    fn num_sge(&self) -> usize {
        usize::try_from(self.num_sge).unwrap_or(0)
    }
}

/// Posts a list in parts, in order, until one fails; returns the errno value of that one, or 0.
///
/// While a part is posted its last request ends the list; afterwards the list is as it was.
///
/// # Safety
/// `list` is null or a list of requests that nobody else uses meanwhile.
pub(crate) unsafe fn post<W: WorkRequest>(
    mut list: *mut W,
    mut command: impl FnMut(*mut W) -> c_int,
) -> c_int {
    while !list.is_null() {
        // SAFETY: as the caller promises.
        let last = unsafe { end_of_part(list) };
        // SAFETY: an element of the list; the borrow ends before anybody else reads it.
        let next = |last: *mut W, value| unsafe { replace((*last).next(), value) };
        let rest = next(last, null_mut());
        let error = command(list);
        next(last, rest);
        if error != 0 {
            return error;
        }
        list = rest;
    }
    0
}

/// The last request of the longest part that fits one command.
///
/// # Safety
/// `list` is a list of at least one request.
unsafe fn end_of_part<W: WorkRequest>(list: *mut W) -> *mut W {
    let mut last = list;
    let mut bytes = 0;
    let mut at = list;
    while !at.is_null() {
        // SAFETY: an element of the list.
        let request = unsafe { &mut *at };
        bytes += W::BYTES + request.num_sge() * size_of::<tbv_verbs_sys::ibv_sge>();
        if bytes > POST_BYTES && at != list {
            break;
        }
        last = at;
        at = *request.next();
    }
    last
}

/// Polls in parts until there is no more room or nothing more to take; returns how many were taken.
///
/// `command` gets the number taken so far and the room of this part, and returns how many it took or a negative
/// number. That number is only returned if nothing was taken before: completions that were taken must be told.
pub(crate) fn poll(num_entries: c_int, mut command: impl FnMut(c_int, c_int) -> c_int) -> c_int {
    let mut taken = 0;
    while taken < num_entries {
        let room = (num_entries - taken).min(POLL_ENTRIES);
        let got = command(taken, room);
        if got < 0 {
            return if taken > 0 { taken } else { got };
        }
        taken += got;
        if got < room {
            break;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(sges: &[c_int]) -> Vec<ibv_recv_wr> {
        let request =
            |(i, &num_sge)| ibv_recv_wr { wr_id: i as u64, next: null_mut(), sg_list: null_mut(), num_sge };
        let mut list: Vec<ibv_recv_wr> = sges.iter().enumerate().map(request).collect();
        for i in 1..list.len() {
            list[i - 1].next = &raw mut list[i];
        }
        list
    }

    /// Ids of a list's requests.
    fn ids(mut at: *mut ibv_recv_wr) -> Vec<u64> {
        let mut ids = Vec::new();
        while !at.is_null() {
            // SAFETY: an element of a list of this test.
            unsafe {
                ids.push((*at).wr_id);
                at = (*at).next;
            }
        }
        ids
    }

    /// Posts a list, failing at the part that contains `fail_at`; gives the parts and the result.
    fn post_all(list: &mut [ibv_recv_wr], fail_at: Option<u64>) -> (Vec<Vec<u64>>, c_int) {
        let mut parts = Vec::new();
        let head = list.first_mut().map_or(null_mut(), |first| &raw mut *first);
        // SAFETY: a list of this test.
        let result = unsafe {
            post(head, |part| {
                parts.push(ids(part));
                let failed = fail_at.is_some_and(|id| ids(part).contains(&id));
                if failed { libc::ENOMEM } else { 0 }
            })
        };
        assert_eq!(ids(head), (0..list.len() as u64).collect::<Vec<_>>(), "the list must be left as it was");
        (parts, result)
    }

    #[test]
    fn a_short_list_is_one_command() {
        assert_eq!(post_all(&mut [], None), (vec![], 0));
        assert_eq!(post_all(&mut list(&[1]), None), (vec![vec![0]], 0));
        assert_eq!(post_all(&mut list(&[1, 0, 30]), None), (vec![vec![0, 1, 2]], 0));
    }

    #[test]
    fn a_long_list_is_cut_by_bytes_and_stays_in_order() {
        // 32 bytes each: 1024 fill a command.
        let (parts, result) = post_all(&mut list(&[1; 2500]), None);
        assert_eq!((parts.iter().map(Vec::len).collect::<Vec<_>>(), result), (vec![1024, 1024, 452], 0));
        assert_eq!(parts.concat(), (0..2500).collect::<Vec<u64>>());
        // One request that is too large by itself goes alone, for the kernel to judge.
        let (parts, _) = post_all(&mut list(&[1, 4096, 1]), None);
        assert_eq!(parts, [[0], [1], [2]]);
        // A negative number of entries is the kernel's to refuse, too.
        assert_eq!(post_all(&mut list(&[-1]), None).0, [[0]]);
    }

    #[test]
    fn the_first_failure_ends_it() {
        let (parts, result) = post_all(&mut list(&[1; 2500]), Some(1500));
        assert_eq!((parts.len(), result), (2, libc::ENOMEM));
    }

    /// Polls a queue that holds `there` completions, failing at call number `fail_at`.
    fn poll_all(num_entries: c_int, there: c_int, fail_at: usize) -> (c_int, Vec<(c_int, c_int)>) {
        let mut calls = Vec::new();
        let result = poll(num_entries, |taken, room| {
            calls.push((taken, room));
            if calls.len() == fail_at { -1 } else { (there - taken).min(room) }
        });
        (result, calls)
    }

    #[test]
    fn few_completions_are_one_command() {
        assert_eq!(poll_all(16, 0, 0), (0, vec![(0, 16)]));
        assert_eq!(poll_all(16, 20, 0), (16, vec![(0, 16)]));
        assert_eq!(poll_all(1024, 1024, 0), (1024, vec![(0, 1024)]));
        assert_eq!(poll_all(0, 20, 0), (0, vec![]));
        assert_eq!(poll_all(-1, 20, 0), (0, vec![]));
    }

    #[test]
    fn many_completions_are_polled_until_one_comes_short() {
        assert_eq!(poll_all(4000, 1500, 0), (1500, vec![(0, 1024), (1024, 1024)]));
        assert_eq!(poll_all(2000, 9999, 0), (2000, vec![(0, 1024), (1024, 976)]));
    }

    #[test]
    fn an_error_never_hides_completions() {
        assert_eq!(poll_all(16, 3, 1).0, -1);
        assert_eq!(poll_all(2000, 9999, 2).0, 1024);
    }
}
