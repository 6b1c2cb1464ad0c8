//! Where the arguments of a probe are, as its note describes it: `-8@%rdi 4@-12(%rbp) 8@$5`, in the assembler's
//! syntax, on x86-64. What the compiler of the provider may write is known; everything else is refused.

use tbv_common::{Place, SiteArg};

/// Registers of 8, 4, 2 and 1 bytes, and their byte offset in `struct pt_regs`. The second bytes (`ah` and its like)
/// are left out: they are not where their register begins.
const REGISTERS: [([&str; 4], u32); 16] = [
    (["r15", "r15d", "r15w", "r15b"], 0),
    (["r14", "r14d", "r14w", "r14b"], 8),
    (["r13", "r13d", "r13w", "r13b"], 16),
    (["r12", "r12d", "r12w", "r12b"], 24),
    (["rbp", "ebp", "bp", "bpl"], 32),
    (["rbx", "ebx", "bx", "bl"], 40),
    (["r11", "r11d", "r11w", "r11b"], 48),
    (["r10", "r10d", "r10w", "r10b"], 56),
    (["r9", "r9d", "r9w", "r9b"], 64),
    (["r8", "r8d", "r8w", "r8b"], 72),
    (["rax", "eax", "ax", "al"], 80),
    (["rcx", "ecx", "cx", "cl"], 88),
    (["rdx", "edx", "dx", "dl"], 96),
    (["rsi", "esi", "si", "sil"], 104),
    (["rdi", "edi", "di", "dil"], 112),
    (["rsp", "esp", "sp", "spl"], 152),
];
/// Most arguments that a probe can have.
const MOST: usize = 12;

/// All arguments of a probe.
pub(super) fn parse(text: &str) -> Result<Vec<SiteArg>, String> {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    if words.len() > MOST {
        return Err(format!("it has {} arguments", words.len()));
    }
    words
        .into_iter()
        .map(|word| one(word).ok_or_else(|| format!("argument {word:?} is not understood")))
        .collect()
}

fn one(word: &str) -> Option<SiteArg> {
    let (size, place) = word.split_once('@')?;
    let (signed, size) = match size.strip_prefix('-') {
        Some(size) => (1, size),
        None => (0, size),
    };
    let bytes = match size {
        "1" => 1,
        "2" => 2,
        "4" => 4,
        "8" => 8,
        _ => return None,
    };
    let arg = SiteArg { shift: 64 - 8 * bytes, signed, ..SiteArg::default() };
    if let Some(constant) = place.strip_prefix('$') {
        return Some(SiteArg { place: Place::Constant as u32, number: number(constant)?, ..arg });
    }
    if let Some(name) = place.strip_prefix('%') {
        let (register, width) = register(name)?;
        // More than the register holds would be what was in it before.
        return (bytes <= width).then_some(SiteArg { place: Place::Register as u32, register, ..arg });
    }
    let (displacement, base) = place.strip_suffix(')')?.split_once("(%")?;
    let (register, width) = register(base)?;
    let number = if displacement.is_empty() { 0 } else { number(displacement)? };
    (width == 8).then_some(SiteArg { place: Place::Memory as u32, register, number, ..arg })
}

/// The register's offset, and its bytes.
fn register(name: &str) -> Option<(u32, u32)> {
    REGISTERS.iter().find_map(|(names, offset)| {
        let narrower = names.iter().position(|n| *n == name)?;
        Some((*offset, 8 >> narrower))
    })
}

/// A decimal or hexadecimal number, as 64 bits.
fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    // Down to the smallest number of 64 bits with a sign.
    if negative { (value <= 1 << 63).then(|| value.wrapping_neg()) } else { Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn args(text: &str) -> Vec<(u32, u32, u32, u32, i64)> {
        let parsed = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        parsed.iter().map(|a| (a.place, a.register, a.shift, a.signed, a.number as i64)).collect()
    }

    #[test]
    fn places_are_constants_registers_and_memory() {
        let (constant, register, memory) =
            (Place::Constant as u32, Place::Register as u32, Place::Memory as u32);
        assert_eq!(args("8@%rdi -8@%rax"), [(register, 112, 0, 0, 0), (register, 80, 0, 1, 0)]);
        assert_eq!(
            args("4@%esi  -2@%r8w 1@%bl"),
            [(register, 104, 32, 0, 0), (register, 72, 48, 1, 0), (register, 40, 56, 0, 0)]
        );
        assert_eq!(
            args("4@-12(%rbp) 8@(%rsp) -1@0x10(%r12)"),
            [(memory, 32, 32, 0, -12), (memory, 152, 0, 0, 0), (memory, 24, 56, 1, 16)]
        );
        assert_eq!(
            args("8@$5 -4@$-1 8@$18446744073709551615 -8@$-9223372036854775808"),
            [
                (constant, 0, 0, 0, 5),
                (constant, 0, 32, 1, -1),
                (constant, 0, 0, 0, -1),
                (constant, 0, 0, 1, i64::MIN)
            ]
        );
        assert_eq!(args(""), []);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for bad in [
            "8",
            "@%rdi",
            "3@%rdi",
            "+8@%rdi",
            "--8@%rdi",
            "8f@%xmm0",
            "8@%xmm0",
            "8@rdi",
            "8@%",
            "8@%eax",
            "4@%ax",
            "1@%ah",
            "8@$",
            "8@$-",
            "8@$+1",
            "8@$0x",
            "8@$1x",
            "8@$ 1",
            "8@$18446744073709551616",
            "8@$-9223372036854775809",
            "8@4(%eax)",
            "8@(%rax,%rbx,8)",
            "8@x(%rip)",
            "8@foo",
            "8@4(%rax",
            "8@4(rax)",
            "8@4%rax)",
            "8@%rdi,8@%rsi",
            "8@%rdi\t8@%rsi",
            "8@%rdi\u{a0}",
            "８@%rdi",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(parse(&["8@%rax"; 13].join(" ")).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "[-8421@%$()a-z0-9x, ]{0,40}") {
            if let Ok(args) = parse(&text) {
                for arg in args {
                    // What the programs rely on.
                    prop_assert!(arg.register <= 152 && arg.register % 8 == 0);
                    prop_assert!([0, 32, 48, 56].contains(&arg.shift) && arg.place <= Place::Memory as u32);
                }
            }
        }

        #[test]
        fn numbers_are_what_they_say(n: i64, hex: bool) {
            let text = if hex && n >= 0 { format!("8@${n:#x}") } else { format!("8@${n}") };
            prop_assert_eq!(parse(&text).unwrap()[0].number, n as u64);
        }
    }
}
