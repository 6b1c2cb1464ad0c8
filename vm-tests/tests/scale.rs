//! Numbers that take long.
#![cfg(feature = "vm")]

use anyhow::Result;
use vm_tests::scale;

#[test]
fn five_thousand_short_lived_processes_stay_within_the_limits() -> Result<()> {
    scale::short_lived(env!("CARGO_BIN_EXE_uverbs-raw"), 5_000, &[])
}
