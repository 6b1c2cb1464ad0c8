//! Layouts for the provider's probes (USDT): where the arguments of a probe are, and what falls back.

/// Probes in files that can be attached to: the compiler may make several of one.
pub const MAX_SITES: u32 = 64;
/// Arguments of a probe that are read.
pub const SITE_ARGS: usize = 4;
/// Process × reason of queues that are polled by system call.
pub const MAX_FALL_BACKS: u32 = 4_096;

/// Constant of the programs: whether the provider's probes are attached. Completions are then known by their number in
/// the ring, which the process knows, too.
pub const PROBED: &str = "PROBED";

/// Where an argument is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it always has the value [`SiteArg::number`].
    #[default]
    Constant = 0,
    /// In a register.
    Register = 1,
    /// In memory, at the address that is the sum of a register and [`SiteArg::number`].
    Memory = 2,
}

/// How to get at one argument.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteArg {
    /// A [`Place`].
    pub place: u32,
    /// Byte offset of the register in `struct pt_regs`.
    pub register: u32,
    /// Bits of 64 that are not part of it, the upper ones: 0, 32, 48 or 56.
    pub shift: u32,
    /// Whether its highest bit is a sign.
    pub signed: u32,
    /// See [`Place`].
    pub number: u64,
}

/// A place in the provider's code where a probe is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Its first arguments.
    pub args: [SiteArg; SITE_ARGS],
}

/// Why queues of a process are polled by system call, though it wanted to poll them in user space.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FallBackKey {
    /// The process.
    pub pid: u32,
    /// A `tbv_proto::FallBack`.
    pub reason: u32,
}

#[cfg(feature = "user")]
mod pod {
    // SAFETY: each is `repr(C)`, has no padding (asserted below) and is valid for any bytes.
    unsafe impl aya::Pod for super::Site {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::FallBackKey {}
}

const _: () = {
    assert!(size_of::<SiteArg>() == 24);
    assert!(size_of::<Site>() == 24 * SITE_ARGS);
    assert!(size_of::<FallBackKey>() == 8);
};
