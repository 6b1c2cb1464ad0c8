//! What strace saw of the calls on uverbs devices, per process.
//!
//! The parser takes the output of [`COMMAND`] and refuses every line that it doesn't understand, so
//! that a changed format is an error and not a smaller count.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

use crate::calls::{Call, Counts, FAULTED, faulted_as_one};
use crate::strace_line::{self, Line};

/// strace and its options, to be followed by `-o FILE CMD…`. `-X raw` gives numbers for ioctls and
/// clone flags; the clones tell threads from processes. Other calls don't stop.
pub const COMMAND: &[&str] =
    &["strace", "--seccomp-bpf", "-f", "-yy", "-X", "raw", "-e", "trace=ioctl,write,clone,clone3,fork,vfork"];

const CLONE_THREAD: u64 = 0x10000;

/// The uverbs calls of one strace run.
#[derive(Debug, Default)]
pub struct Trace {
    /// Calls that returned.
    pub finished: Counts,
    /// Calls that strace saw begin and not return, because the process was killed: the kernel may
    /// have started them or not. Their errno is `None`.
    pub cut: Counts,
}

/// What came after the last time that a program wrote GATE to descriptor -1.
pub fn after_gate(text: &str) -> Result<&str> {
    let gate = text.rfind("write(-1, \"GATE\"").context("no GATE in strace's output")?;
    let rest = &text[gate..];
    Ok(rest.find('\n').map_or("", |end| &rest[end + 1..]))
}

/// Reads the output file of a run of [`COMMAND`].
pub fn parse(text: &str) -> Result<Trace> {
    let mut calls = Vec::new();
    let mut begun: HashMap<u32, String> = HashMap::new();
    let mut creator: HashMap<u32, u32> = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let complete = (|| {
            let (tid, line) = strace_line::split(line)?;
            Ok(match line {
                Line::Call(text) => Some((tid, text.to_owned())),
                Line::Begun(text) => {
                    ensure!(begun.insert(tid, text.to_owned()).is_none(), "a call inside a call");
                    None
                }
                Line::Resumed(text) => {
                    Some((tid, begun.remove(&tid).context("resumed from nowhere")? + text))
                }
                Line::Ended => begun.remove(&tid).map(|text| (tid, text + ") = ?")),
                Line::Other => None,
            })
        })()
        .with_context(|| format!("line {}: {line}", number + 1))?;
        let Some((tid, text)) = complete else { continue };
        let seen = strace_line::call(&text).with_context(|| format!("line {}: {text}", number + 1))?;
        match seen.name {
            "clone" | "clone3" if seen.clone_flags()? & CLONE_THREAD != 0 => {
                if let Some(child) = seen.returned() {
                    creator.insert(child, tid);
                }
            }
            "clone" | "clone3" | "fork" | "vfork" => {}
            "ioctl" | "write" => calls.extend(seen.on_uverbs()?.map(|call| (tid, call))),
            other => bail!("line {}: {other} was not asked for", number + 1),
        }
    }
    for (tid, text) in begun {
        let seen = strace_line::call(&(text + ") = ?"))?.on_uverbs()?;
        calls.extend(seen.map(|call| (tid, call)));
    }

    let mut trace = Trace::default();
    for (tid, seen) in calls {
        let mut pid = tid;
        while let Some(parent) = creator.get(&pid) {
            pid = *parent;
        }
        let tally = if seen.cut { &mut trace.cut } else { &mut trace.finished };
        let call = Call { pid, entry: seen.entry, op: seen.op, errno: seen.errno };
        *tally.entry(call).or_default() += 1;
    }
    Ok(trace)
}

/// Whether `seen` by tbv is what strace saw: equal, but for calls that were cut by a kill, each of
/// which may or may not be among the seen ones (with any errno). `Err` says where they differ.
pub fn agrees(trace: &Trace, seen: &Counts) -> Result<()> {
    let (finished, mut left) = (faulted_as_one(&trace.finished), faulted_as_one(seen));
    let mut cut = trace.cut.clone();
    for is_same in [same_operation, same_but_unread] {
        for (call, count) in &mut left {
            let mut more = count.saturating_sub(finished.get(call).copied().unwrap_or_default());
            for (_, spare) in cut.iter_mut().filter(|(cut, _)| is_same(cut, call)) {
                let taken = more.min(*spare);
                (*spare, *count, more) = (*spare - taken, *count - taken, more - taken);
            }
        }
    }
    left.retain(|_, count| *count > 0);
    let difference = crate::calls::difference(("strace", &finished), ("tbv", &left));
    ensure!(difference.is_empty(), "{difference}cut off: {:?}", trace.cut);
    Ok(())
}

fn same_operation(cut: &Call, seen: &Call) -> bool {
    (cut.pid, &cut.entry, &cut.op) == (seen.pid, &seen.entry, &seen.op)
}

/// A write of which strace, while the process died, could show nothing; or of which it never learned
/// that it faulted.
fn same_but_unread(cut: &Call, seen: &Call) -> bool {
    let unread = cut.op == "WRITE_UNREADABLE" || seen.op == FAULTED;
    (cut.pid, &cut.entry) == (seen.pid, &seen.entry) && seen.entry == "write" && unread
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(pid: u32, entry: &str, op: &str, errno: Option<&str>) -> Call {
        Call { pid, entry: entry.into(), op: op.into(), errno: errno.map(str::to_owned) }
    }

    const THREADS_AND_KILL: &str = r#"
100 clone3({flags=0x3d0f00, child_tid=0x7f0000000990, stack=0x7f00, tls=0x7f00} => {parent_tid=[101]}, 88) = 101
100 clone(child_stack=NULL, flags=0x1200000|0x11, child_tidptr=0x7f0000000a10 <unfinished ...>
101 ioctl(3</dev/infiniband/uverbs0<char 231:192>>, 0xc0181b01, 0x7f000000) = -1 EINVAL (Invalid argument)
100 <... clone resumed>) = 102
102 write(3</dev/infiniband/uverbs0<char 231:192>>, "\34\0\0\0\10\0\0\0\1", 32) = 32
102 ioctl(3</dev/infiniband/uverbs0<char 231:192>>, 0xc0181b01, 0x7f000000 <unfinished ...>
100 ioctl(3</dev/infiniband/uverbs0<char 231:192>>, 0x5401, 0x7f000000 <unfinished ...>
100 <... ioctl resumed>) = -1 ENOTTY (Inappropriate ioctl for device)
100 ioctl(1</dev/pts/0<char 136:0>>, 0x5401, 0x7f000000) = 0
100 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=102} ---
101 ioctl(3</dev/infiniband/uverbs0<char 231:192>>, 0xc0181b01, 0x7f000000 <unfinished ...>) = ?
102 +++ killed by SIGKILL +++
101 +++ exited with 0 +++
100 +++ exited with 0 +++"#;

    #[test]
    fn threads_belong_to_their_process_and_cut_calls_stand_apart() {
        let trace = parse(THREADS_AND_KILL.trim_start()).unwrap();
        let expected = Counts::from([
            (call(100, "ioctl", "0x5401", Some("ENOTTY")), 1),
            (call(100, "ioctl", "0xc0181b01", Some("EINVAL")), 1),
            (call(102, "write", "POST_SEND", None), 1),
        ]);
        assert_eq!(trace.finished, expected);
        let cut = Counts::from([
            (call(100, "ioctl", "0xc0181b01", None), 1),
            (call(102, "ioctl", "0xc0181b01", None), 1),
        ]);
        assert_eq!(trace.cut, cut);
    }

    #[test]
    fn a_cut_call_may_be_missing_or_seen_once() {
        let trace = parse(THREADS_AND_KILL.trim_start()).unwrap();
        agrees(&trace, &trace.finished).unwrap();
        let mut seen = trace.finished.clone();
        seen.insert(call(102, "ioctl", "0xc0181b01", Some("EINTR")), 1);
        agrees(&trace, &seen).unwrap();
        seen.insert(call(102, "ioctl", "0xc0181b01", Some("EINTR")), 2);
        assert!(agrees(&trace, &seen).is_err());
        seen.clear();
        assert!(agrees(&trace, &seen).is_err());
    }

    #[test]
    fn a_cut_write_that_strace_could_not_read_may_be_any_one() {
        let trace = Trace {
            finished: Counts::from([(call(1, "write", "POST_SEND", Some("EFAULT")), 43)]),
            cut: Counts::from([
                (call(1, "write", "WRITE_UNREADABLE", None), 1),
                (call(1, "write", "POLL_CQ", None), 1),
            ]),
        };
        let seen = |calls: &[(Call, u64)]| agrees(&trace, &Counts::from_iter(calls.iter().cloned()));
        let faulted = |count| (call(1, "write", "POST_RECV", Some("EFAULT")), count);
        let (polled, posted) = (call(1, "write", "POLL_CQ", None), call(1, "write", "POST_SEND", None));
        seen(&[faulted(43)]).unwrap();
        seen(&[faulted(45)]).unwrap();
        seen(&[faulted(44), (polled.clone(), 1)]).unwrap();
        seen(&[faulted(43), (polled.clone(), 2)]).unwrap();
        seen(&[faulted(43), (posted.clone(), 1)]).unwrap();
        assert!(seen(&[faulted(42)]).is_err());
        assert!(seen(&[faulted(46)]).is_err());
        assert!(seen(&[faulted(43), (posted, 2)]).is_err());
        assert!(seen(&[faulted(43), (call(2, "write", "POLL_CQ", None), 1)]).is_err());
    }

    #[test]
    fn unknown_lines_are_errors() {
        for text in ["ioctl(3) = 0", "1 what is this", "1 read(3, 1, 2) = 0", "1 <... ioctl resumed>) = 0"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
