//! The part of `<infiniband/verbs.h>` that the provider and the probes use.
//!
//! Names are the header's, so that its manual pages apply. `tests/layout.rs` holds every structure and constant
//! against the installed header. Enumerations are plain integers here: the values come from a kernel and a library
//! that may know more of them than we do.

#![allow(non_camel_case_types)]

mod attributes;
mod extended;
mod functions;
mod inline;
mod objects;
mod work;

pub use attributes::*;
pub use extended::*;
pub use functions::*;
pub use inline::*;
pub use objects::*;
pub use work::*;
