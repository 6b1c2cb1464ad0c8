//! Values with a unit or a limit.

use std::{net::SocketAddr, time::Duration};

use tbv_core::events;

/// A century. A clock can be added to it.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration > LONGEST => Err("is too long".to_owned()),
        Ok(duration) if duration >= Duration::from_millis(1) => Ok(duration),
        Err(_) if !seconds.is_nan() && seconds > 0.0 => Err("is too long".to_owned()),
        _ => Err("must be at least 0.001".to_owned()),
    }
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be numbers, such as 127.0.0.1:9477 or [::1]:9477".to_owned())
}

pub(super) fn ring_bytes(text: &str) -> Result<u32, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.parse::<u32>().ok().and_then(|n| n.checked_mul(unit));
    let fits = |n: &u32| n.is_power_of_two() && (events::RING_MIN..=events::RING_MAX).contains(n);
    bytes.filter(fits).ok_or_else(|| "must be a power of two from 4K to 1G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_numbers() {
        assert_eq!(address("[::1]:1").unwrap().port(), 1);
        for bad in ["localhost:9477", "127.0.0.1", ":9477"] {
            assert!(address(bad).unwrap_err().contains("127.0.0.1:9477"), "{bad}");
        }
    }

    #[test]
    fn sizes_and_times_are_understood_or_refused() {
        assert_eq!(
            ["4096", "4K", "8M", "1g"].map(|t| ring_bytes(t).unwrap()),
            [4096, 4096, 8 << 20, 1 << 30]
        );
        assert_eq!(seconds("9.3e18").unwrap_err(), "is too long");
        assert_eq!(seconds("1e20").unwrap_err(), "is too long");
        for bad in ["", "K", "3K", "2048", "2G", "4G", "-4K", "8MB"] {
            assert!(ring_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "0", "-1", "nan", "inf", "x"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("1e300"), Err("is too long".to_owned()));
    }
}
