//! Holds Rust's view of a C header against a C compiler's.
//!
//! A [`Check`] is a list of C constant expressions with the value that Rust believes each has. It becomes a small
//! C program, which is compiled against the real headers and run; every difference is listed. Sizes, alignments
//! and offsets come from [`layout!`]:
//!
//! ```
//! # use layout_check::{layout, Check};
//! #[repr(C)]
//! struct Div {
//!     quot: i32,
//!     rem: i32,
//! }
//! let check = Check::new("<stdlib.h>").all(layout!(Div as "div_t" { quot, rem })).number("RAND_MAX", 2147483647);
//! check.run(&std::env::temp_dir().join("layout-check-doc")).unwrap();
//! ```

mod error;
mod program;

pub use error::Error;
pub use program::Check;

/// Size, alignment and member offsets of a type, as `(C expression, value)` pairs for [`Check::all`].
///
/// A member with another name or place in C is given as `rust_name = "c.path"`.
#[macro_export]
macro_rules! layout {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $c:literal) => { $c };
    ($rust:ty as $c:tt { $($field:ident $(= $path:literal)?),* $(,)? }) => {
        vec![
            (format!("sizeof({})", $c), ::core::mem::size_of::<$rust>()),
            (format!("_Alignof({})", $c), ::core::mem::align_of::<$rust>()),
            $((
                format!("offsetof({}, {})", $c, $crate::layout!(@name $field $($path)?)),
                ::core::mem::offset_of!($rust, $field),
            ),)*
        ]
    };
}
