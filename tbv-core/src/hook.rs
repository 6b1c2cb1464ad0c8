//! The ways to see an uverbs call, best first. They give the same counts, but for what
//! [`Hook::limits`] says is not seen.

use std::{fmt, str::FromStr};

/// One way to attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// fentry/fexit on the functions of ib_uverbs. Needs its BTF and CAP_SYS_ADMIN.
    Fentry,
    /// kprobe/kretprobe on the functions of ib_uverbs.
    Kprobe,
    /// fentry/fexit on the ioctl and write system calls. Needs the kernel's BTF.
    SyscallFentry,
    /// The tracepoints of all system calls. Needs the kernel's BTF for the file.
    RawSyscall,
}

impl Hook {
    /// In the order in which they are tried.
    pub const ALL: [Hook; 4] = [Hook::Fentry, Hook::Kprobe, Hook::SyscallFentry, Hook::RawSyscall];

    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::Fentry => "fentry",
            Hook::Kprobe => "kprobe",
            Hook::SyscallFentry => "syscall-fentry",
            Hook::RawSyscall => "raw-syscall",
        }
    }

    /// What it attaches to, for people.
    pub const fn description(self) -> &'static str {
        match self {
            Hook::Fentry => "fentry/fexit on ib_uverbs_ioctl and ib_uverbs_write",
            Hook::Kprobe => "kprobe/kretprobe on ib_uverbs_ioctl and ib_uverbs_write",
            Hook::SyscallFentry => "fentry/fexit on the ioctl and write system calls",
            Hook::RawSyscall => "raw tracepoints sys_enter and sys_exit",
        }
    }

    /// What it cannot see or costs besides, if anything.
    pub const fn limits(self) -> Option<&'static str> {
        match self {
            Hook::Fentry | Hook::Kprobe => None,
            Hook::SyscallFentry => Some("does not see 32-bit programs, writev(2) or io_uring"),
            Hook::RawSyscall => {
                Some("does not see 32-bit programs, writev(2) or io_uring; slows every system call a little")
            }
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Hook {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|hook| hook.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Hook::name).join(", ");
            format!("no hook is called {name:?}; there are {names}")
        })
    }
}
