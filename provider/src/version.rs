//! The ABI versions that this provider knows; its test doubles know another one (see Cargo.toml).

use tbv_proto::UVERBS_ABI_VERSION;

/// What a device must have for libibverbs to list it.
pub(crate) const LISTED: u32 = UVERBS_ABI_VERSION + cfg!(feature = "double-listed") as u32;

/// What the module must say when a device is opened.
pub(crate) const OPENED: u32 = UVERBS_ABI_VERSION + cfg!(feature = "double-opened") as u32;
