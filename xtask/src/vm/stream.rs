//! Copies a guest's output to ours until the token that ends it.

use std::io::{self, Read, Write};

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the token: all of it was copied.
    Complete,
    /// The guest went away first.
    Cut,
    /// Nobody reads our output any more.
    Unread,
}

/// Copies bytes as they come. Holds back only what may be the beginning of the token.
pub(crate) fn copy(mut from: impl Read, mut to: impl Write, token: &[u8]) -> End {
    let mut buffer = vec![0; 64 * 1024];
    let mut held: Vec<u8> = Vec::new();
    loop {
        let read = match from.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        if read == 0 {
            return if write(&mut to, &held) { End::Cut } else { End::Unread };
        }
        held.extend(&buffer[..read]);
        let complete = held.ends_with(token);
        let keep = if complete { token.len() } else { prefix_at_end(&held, token) };
        let ready = held.len() - keep;
        if !write(&mut to, &held[..ready]) {
            return End::Unread;
        }
        if complete {
            return End::Complete;
        }
        held.drain(..ready);
    }
}

fn write(to: &mut impl Write, bytes: &[u8]) -> bool {
    to.write_all(bytes).and_then(|()| to.flush()).is_ok()
}

/// Length of the longest beginning of `token` that `text` ends with.
fn prefix_at_end(text: &[u8], token: &[u8]) -> usize {
    (1..token.len().min(text.len() + 1)).rev().find(|&length| text.ends_with(&token[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one piece a read.
    struct Pieces<'a>(Vec<&'a [u8]>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    fn copied(pieces: &[&[u8]]) -> (Vec<u8>, End) {
        let mut to = Vec::new();
        let end = copy(Pieces(pieces.to_vec()), &mut to, b"aab");
        (to, end)
    }

    #[test]
    fn the_token_ends_the_stream_however_it_is_cut() {
        for pieces in [&[&b"x\0yaab"[..]][..], &[b"x\0", b"y", b"a", b"ab"], &[b"x\0ya", b"ab"]] {
            assert_eq!(copied(pieces), (b"x\0y".to_vec(), End::Complete));
        }
        assert_eq!(copied(&[b"aaab"]), (b"a".to_vec(), End::Complete));
        assert_eq!(copied(&[b"aab"]), (Vec::new(), End::Complete));
    }

    #[test]
    fn without_a_token_all_is_copied() {
        assert_eq!(copied(&[b"xa", b"a"]), (b"xaa".to_vec(), End::Cut));
        assert_eq!(copied(&[b"a", b"c", b"aa", b"c"]), (b"acaac".to_vec(), End::Cut));
    }

    #[test]
    fn lines_are_passed_on_at_once() {
        struct Seen<'a>(&'a std::cell::RefCell<Vec<u8>>);
        impl Write for Seen<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().extend(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        struct Checks<'a>(u8, &'a std::cell::RefCell<Vec<u8>>);
        impl Read for Checks<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                assert_eq!(self.1.borrow().len(), usize::from(self.0) * 2);
                self.0 += 1;
                buffer[..2].copy_from_slice(b"l\n");
                Ok(if self.0 > 3 { 0 } else { 2 })
            }
        }
        let seen = std::cell::RefCell::new(Vec::new());
        assert_eq!(copy(Checks(0, &seen), Seen(&seen), b"token"), End::Cut);
        assert_eq!(seen.into_inner(), b"l\nl\nl\n");
    }
}
