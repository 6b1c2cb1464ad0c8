//! How numbers and names are shown to people.

/// Nanoseconds with three or four significant digits and a unit.
pub fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{:.*} µs", digits(value / 1e3), value / 1e3),
        1_000_000..=999_999_999 => format!("{:.*} ms", digits(value / 1e6), value / 1e6),
        _ => format!("{:.*} s", digits(value / 1e9), value / 1e9),
    }
}

fn digits(value: f64) -> usize {
    if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    }
}

/// A bar of at most `width` characters: the largest count has the longest, and no count but 0 has none.
pub fn bar(n: u64, most: u64, width: u64, unicode: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let steps = if unicode { 8 } else { 1 };
    let scaled = u128::from(n) * u128::from(width * steps);
    let length = scaled.div_ceil(u128::from(most.max(1))) as u64;
    if unicode {
        let rest = EIGHTHS.get((length % steps) as usize).copied().unwrap_or_default();
        "█".repeat((length / steps) as usize) + rest
    } else {
        "#".repeat(length as usize)
    }
}

/// A power of two of nanoseconds, as exactly as three decimals allow: it is no round number of another unit.
pub fn bound(ns: u64) -> String {
    let (value, unit) = match ns {
        0..=999 => return format!("{ns} ns"),
        1_000..=999_999 => (ns as f64 / 1e3, "µs"),
        1_000_000..=999_999_999 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{value:.3} {unit}")
}

/// Characters that make a terminal show a line in another order than it is.
fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name from the kernel or a command line, made harmless for a terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escape = c.is_control() || changes_direction(c);
            let plain = (!escape).then_some(c);
            plain.into_iter().chain(escape.then(|| c.escape_default()).into_iter().flatten())
        })
        .collect()
}

/// Whether the locale is UTF-8, by its variables in the order in which they count.
pub fn is_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let charset = locale.to_ascii_lowercase().replace('-', "");
    charset.ends_with("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let shown = [0, 999, 1_000, 15_540, 123_456, 2_500_000, 75_000_000_000].map(duration);
        assert_eq!(shown, ["0 ns", "999 ns", "1.00 µs", "15.5 µs", "123 µs", "2.50 ms", "75.0 s"]);
    }

    #[test]
    fn names_cannot_drive_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(printable("näme"), "näme");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn bars_are_scaled_to_the_largest_and_show_whatever_is_there() {
        assert_eq!([0, 1, 50, 100].map(|n| bar(n, 100, 40, false).len()), [0, 1, 20, 40]);
        assert_eq!(bar(0, 0, 40, false), "");
        assert_eq!(bar(u64::MAX, u64::MAX, 40, false).len(), 40);
        assert_eq!([0, 1, 4, 320].map(|n| bar(n, 320, 40, true).chars().count()), [0, 1, 1, 40]);
        assert_eq!(bar(12, 320, 40, true), "█▌");
    }

    #[test]
    fn bounds_are_told_as_they_are() {
        assert_eq!([0, 512, 1 << 14, 1 << 20].map(bound), ["0 ns", "512 ns", "16.384 µs", "1.049 ms"]);
    }
}
