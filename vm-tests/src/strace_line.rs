//! One line of strace output.

use anyhow::{Context, Result, bail};

use crate::write_command;

/// The path of every uverbs device file begins like this.
const DEVICE: &str = "</dev/infiniband/uverbs";
/// How strace marks a call that another thread's line interrupts.
const UNFINISHED: &str = " <unfinished ...>";

/// A line without its thread id.
#[derive(Debug, PartialEq)]
pub enum Line<'a> {
    /// A whole call.
    Call(&'a str),
    /// A call up to its interruption.
    Begun(&'a str),
    /// The rest of it.
    Resumed(&'a str),
    /// The thread's end.
    Ended,
    /// A signal and the like.
    Other,
}

/// Thread id and line.
pub fn split(line: &str) -> Result<(u32, Line<'_>)> {
    let (tid, text) = line.split_once(' ').context("no thread id")?;
    let tid = tid.parse().context("no thread id")?;
    let text = text.trim_start();
    let parsed = if text.starts_with("???(") || text.starts_with("<... ??? resumed>") {
        // strace could not read which call it is, because the process was killed meanwhile.
        Line::Other
    } else if let Some(rest) = text.strip_prefix("<... ") {
        Line::Resumed(rest.split_once(" resumed>").context("no 'resumed'")?.1)
    } else if text.starts_with("+++ ") {
        Line::Ended
    } else if text.starts_with("--- ") {
        Line::Other
    } else if let Some(begun) = text.strip_suffix(UNFINISHED) {
        Line::Begun(begun)
    } else {
        Line::Call(text)
    };
    Ok((tid, parsed))
}

/// A call and its result.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Name of the system call.
    pub name: &'a str,
    arguments: &'a str,
    result: &'a str,
}

/// A call on a uverbs device.
#[derive(Debug, PartialEq)]
pub struct Uverbs {
    /// `ioctl` or `write`.
    pub entry: String,
    /// The ioctl's number in hex, or the write's command.
    pub op: String,
    /// The errno's name.
    pub errno: Option<String>,
    /// Whether its return wasn't seen.
    pub cut: bool,
}

/// Splits `name(arguments) = result`.
pub fn call(text: &str) -> Result<Seen<'_>> {
    let (name, rest) = text.split_once('(').context("no call")?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        bail!("no call");
    }
    let (arguments, result) = rest.rsplit_once(" = ").context("no result")?;
    let arguments = arguments.trim_end().strip_suffix(')').context("no closing parenthesis")?;
    Ok(Seen { name, arguments, result: result.trim() })
}

impl Seen<'_> {
    /// The number that was returned, if it isn't an error.
    pub fn returned(&self) -> Option<u32> {
        self.result.split(' ').next()?.parse().ok()
    }

    /// The flags of clone or clone3.
    pub fn clone_flags(&self) -> Result<u64> {
        let (_, flags) = self.arguments.split_once("flags=").context("no flags")?;
        let digits = flags.strip_prefix("0x").unwrap_or(flags);
        let end = digits.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(digits.len());
        u64::from_str_radix(digits.get(..end).unwrap_or_default(), 16).context("flags aren't a number")
    }

    /// The call, if it is one on a uverbs device.
    pub fn on_uverbs(&self) -> Result<Option<Uverbs>> {
        let (fd, rest) = self.arguments.split_at(self.arguments.find(['<', ',']).unwrap_or(0));
        if fd.parse::<u32>().is_err() || !rest.starts_with(DEVICE) {
            return Ok(None);
        }
        let (_, rest) = rest.split_once(">, ").context("no second argument")?;
        let rest = rest.strip_suffix(UNFINISHED).unwrap_or(rest);
        let op = match self.name {
            "ioctl" => rest.split(',').next().unwrap_or_default().to_owned(),
            "write" => {
                let (data, count) = rest.rsplit_once(", ").context("no size")?;
                write_command::name(bytes(data).as_deref(), count.parse().context("size")?)?
            }
            other => bail!("{other} on a uverbs device"),
        };
        let mut result = self.result.split(' ');
        let (errno, cut) = match (result.next(), result.next()) {
            // An errno that has no name: the process was killed while strace looked.
            (Some("-1"), Some("(errno")) => (None, true),
            (Some("-1"), Some(errno)) => (Some(errno.to_owned()), false),
            (Some("?"), Some(errno)) if errno.starts_with('E') => (Some(errno.to_owned()), false),
            (Some("?"), _) => (None, true),
            (Some(number), _) if number.parse::<u64>().is_ok() => (None, false),
            _ => bail!("result {}", self.result),
        };
        Ok(Some(Uverbs { entry: self.name.to_owned(), op, errno, cut }))
    }
}

/// The bytes of a string as strace quotes it; `None` if it is a pointer that strace couldn't read.
fn bytes(quoted: &str) -> Option<Vec<u8>> {
    let mut rest = quoted.strip_prefix('"')?.trim_end_matches("...").strip_suffix('"')?.bytes().peekable();
    let mut found = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            found.push(byte);
            continue;
        }
        let escape = rest.next()?;
        found.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|digit| (b'0'..=b'7').contains(digit)) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                value as u8
            }
            other => other,
        });
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_strace_could_not_read_is_none() {
        for text in ["327 ???( <unfinished ...>", "327   <... ??? resumed>)                = ?"] {
            assert_eq!(split(text).unwrap(), (327, Line::Other), "{text}");
        }
        assert!(matches!(split("327 <... ioctl resumed>) = ?").unwrap(), (327, Line::Resumed(_))));
    }

    #[test]
    fn strings_are_unquoted() {
        assert_eq!(bytes(r#""\34\0\0\0\n1\"\\""#).unwrap(), b"\x1c\0\0\0\n1\"\\");
        assert_eq!(bytes(r#""\1\0018"..."#).unwrap(), b"\x01\x018");
        assert_eq!(bytes("0x7f00"), None);
    }

    #[test]
    fn writes_have_their_command_and_errno() {
        let seen = |text: &str| call(text).unwrap().on_uverbs().unwrap().unwrap();
        let device = "3</dev/infiniband/uverbs0<char 231:192>>";
        let post = seen(&format!(r#"write({device}, "\34\0\0\0\10\0\0\0) = 1", 32) = 32"#));
        assert_eq!((post.op.as_str(), post.errno, post.cut), ("POST_SEND", None, false));
        let short = seen(&format!(r#"write({device}, "\34\0\0\0", 4) = -1 EINVAL (Invalid argument)"#));
        assert_eq!((short.op.as_str(), short.errno.as_deref()), ("WRITE_UNREADABLE", Some("EINVAL")));
        let pointer = seen(&format!("write({device}, 0x10, 24) = -1 EFAULT (Bad address)"));
        assert_eq!((pointer.op.as_str(), pointer.errno.as_deref()), ("WRITE_UNREADABLE", Some("EFAULT")));
        assert!(seen(&format!("ioctl({device}, 0xc0181b01, 0x7f00 <unfinished ...>) = ?")).cut);
        assert!(seen(&format!("ioctl({device}, 0xc0181b01, 0x7f00) = -1 (errno 18446744073709551604)")).cut);
    }

    #[test]
    fn other_files_are_left_out() {
        let other = call(r#"write(1<pipe:[4321]>, "3</dev/infiniband/uverbs0>, ", 28) = 28"#).unwrap();
        assert_eq!(other.on_uverbs().unwrap(), None);
    }
}
