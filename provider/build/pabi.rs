//! The private ABI number in a libibverbs image.

/// What the private symbol version is called, before its number.
const MARK: &[u8] = b"IBVERBS_PRIVATE_";

/// The one private ABI that a libibverbs image defines: its symbol version `IBVERBS_PRIVATE_<number>`.
pub(crate) fn of(image: &[u8]) -> Result<u32, String> {
    let mut found: Vec<u32> = image
        .windows(MARK.len())
        .enumerate()
        .filter(|(_, window)| *window == MARK)
        .filter_map(|(at, _)| number(&image[at + MARK.len()..]))
        .collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [one] => Ok(one),
        [] => Err("no symbol version IBVERBS_PRIVATE_<number>; is it libibverbs?".into()),
        _ => Err(format!("several private ABIs, {found:?}")),
    }
}

/// The number that ends with a NUL, as names in a string table do.
fn number(bytes: &[u8]) -> Option<u32> {
    let end = bytes.iter().position(|&b| b == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn one_version_is_found_wherever_it_is() {
        assert_eq!(of(b"\x7fELF...\0IBVERBS_1.14\0IBVERBS_PRIVATE_34\0rest"), Ok(34));
        assert_eq!(of(b"IBVERBS_PRIVATE_7\0IBVERBS_PRIVATE_7\0"), Ok(7));
    }

    #[test]
    fn none_and_several_are_errors() {
        assert!(of(b"").is_err());
        assert!(of(b"IBVERBS_PRIVATE_\0IBVERBS_PRIVATE_x\0IBVERBS_PRIVATE_34").is_err());
        assert!(of(b"IBVERBS_PRIVATE_34\0IBVERBS_PRIVATE_35\0").is_err_and(|e| e.contains("[34, 35]")));
    }
}
