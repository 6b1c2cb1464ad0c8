//! Which tier of the tests runs.

use std::env;

/// Whether it is the full one, which has every number.
pub fn is_full() -> bool {
    env::var_os("TBV_FULL").is_some()
}

/// The quick tier does less of the same where that takes long.
pub fn pick<T>(quick: T, full: T) -> T {
    if is_full() { full } else { quick }
}
