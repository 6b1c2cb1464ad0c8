//! What the programs' command lines and endings have in common.

use std::fmt::Display;
use std::process::ExitCode;

use clap::Args;

use crate::pair::Devices;
use crate::verbs::Error;

/// Which devices to use.
#[derive(Args, Debug)]
pub struct DeviceArguments {
    /// Device to use [default: the first one]
    #[arg(short, long, value_name = "NAME")]
    device: Option<String>,
    /// Device at the other end [default: the same device, connected to itself]
    #[arg(short, long, value_name = "NAME")]
    peer: Option<String>,
    /// Port of the devices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    port: u8,
    /// Address peers by the GID with this index [default: by LID, or on Ethernet by a suitable GID]
    #[arg(short, long, value_name = "INDEX")]
    gid_index: Option<u8>,
}

impl From<DeviceArguments> for Devices {
    fn from(arguments: DeviceArguments) -> Self {
        let DeviceArguments { device, peer, port, gid_index } = arguments;
        Self { device, peer, port, gid_index }
    }
}

/// Exit status of a check that failed.
pub const FAILED: u8 = 1;
/// Exit status when the check can't be made here.
pub const UNABLE: u8 = 3;

/// What all programs say about their exit status.
pub const EXIT_STATUS: &str = "\
Exit status:
  0  everything was as it should be
  1  something was not
  2  wrong usage
  3  can't be checked here (no such device, no permission)";

/// Reports why a program ends, and with which status.
pub fn end_with(program: &str, error: &Error) -> ExitCode {
    eprintln!("{program}: {error}");
    match error {
        Error::Wrong(_) | Error::Timeout(_) => ExitCode::from(FAILED),
        Error::Verb { .. } | Error::NoDevice { .. } | Error::Unusable(_) => ExitCode::from(UNABLE),
    }
}

/// A number of bytes for people.
pub fn bytes(count: u64) -> impl Display {
    match count {
        0..0x400 => format!("{count} B"),
        0x400..0x10_0000 => format!("{:.1} KiB", count as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", count as f64 / (1024.0 * 1024.0)),
        _ => format!("{:.1} GiB", count as f64 / (1024.0 * 1024.0 * 1024.0)),
    }
}

/// Reads a number of bytes: `4096`, `64K`, `8M`.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 10),
        None => text.strip_suffix(['M', 'm']).map_or((text, 0), |digits| (digits, 20)),
    };
    let number: usize = digits.parse().map_err(|_| format!("{text:?} is not a size: try 4096, 64K or 8M"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        assert_eq!(parse_bytes("17"), Ok(17));
        assert_eq!(parse_bytes("64K"), Ok(65536));
        assert_eq!(parse_bytes("8m"), Ok(8 << 20));
        for bad in ["", "K", "-1", "1.5M", "8MB", "99999999999999999999"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert!(parse_bytes("99999999999999999M").is_err());
    }

    #[test]
    fn bytes_are_rounded() {
        assert_eq!(bytes(1023).to_string(), "1023 B");
        assert_eq!(bytes(1536).to_string(), "1.5 KiB");
        assert_eq!(bytes(8 << 20).to_string(), "8.0 MiB");
        assert_eq!(bytes(5 << 30).to_string(), "5.0 GiB");
    }
}
