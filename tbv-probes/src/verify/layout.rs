//! Where a message lies in memory: pieces in order, with bytes between and around them that must stay as they are.

use std::ops::Range;

use crate::random::Random;

/// Bytes of a region that one message uses, guards included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Everything from the first guard to the last.
    pub window: Range<usize>,
    /// The scatter/gather pieces, ascending.
    pub pieces: Vec<Range<usize>>,
}

/// Longest guard between pieces.
const GUARD: usize = 96;

impl Layout {
    /// Most bytes that the window of a message takes.
    pub fn most(bytes: usize, pieces: usize) -> usize {
        bytes + (pieces + 1) * GUARD
    }

    /// Distributes `bytes` over up to `pieces` pieces, from `start` on, with gaps and alignments by chance.
    pub fn random(random: &mut Random, start: usize, bytes: usize, pieces: usize) -> Self {
        let pieces = pieces.clamp(1, bytes.max(1));
        // Cuts are distinct, so that no piece is empty.
        let mut cuts = vec![0, bytes];
        while cuts.len() < pieces + 1 {
            let cut = random.within(1..=bytes - 1);
            if !cuts.contains(&cut) {
                cuts.push(cut);
            }
        }
        cuts.sort_unstable();
        let mut at = start + random.within(1..=GUARD);
        let mut laid = Vec::new();
        for pair in cuts.windows(2) {
            let length = pair[1] - pair[0];
            laid.push(at..at + length);
            at += length + random.within(1..=GUARD);
        }
        Self { window: start..at, pieces: laid }
    }

    /// Bytes that the pieces hold.
    pub fn capacity(&self) -> usize {
        self.pieces.iter().map(Range::len).sum()
    }

    /// Puts a message into an image of the window, as a receiver would.
    pub fn scatter(&self, data: &[u8], image: &mut [u8]) {
        let mut left = data;
        for piece in &self.pieces {
            let (now, later) = left.split_at(piece.len().min(left.len()));
            let at = piece.start - self.window.start;
            image[at..at + now.len()].copy_from_slice(now);
            left = later;
        }
    }

    /// Says what a byte of the window is.
    pub fn describe(&self, offset: usize, length: usize) -> String {
        let mut before = 0;
        for (i, piece) in self.pieces.iter().enumerate() {
            if piece.contains(&offset) {
                let at = before + offset - piece.start;
                let part = if at < length { "byte" } else { "unused byte" };
                return format!("{part} {at} of {length} (piece {i} of {})", self.pieces.len());
            }
            before += piece.len();
        }
        "a guard byte beside the message".into()
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;
    use crate::random::Random;

    #[test]
    fn pieces_are_apart_and_hold_the_message() {
        let mut random = Random::new(1);
        for bytes in [1, 2, 3, 4096, 70_000] {
            for pieces in 1..=6 {
                let layout = Layout::random(&mut random, 1000, bytes, pieces);
                assert_eq!(layout.capacity(), bytes);
                assert_eq!(layout.pieces.len(), pieces.min(bytes));
                assert!(layout.pieces.iter().all(|p| !p.is_empty()));
                let mut end = layout.window.start;
                assert_eq!(end, 1000);
                for piece in &layout.pieces {
                    assert!(piece.start > end, "no guard before {piece:?}");
                    end = piece.end;
                }
                assert!(layout.window.end > end, "no guard at the end");
                assert!(layout.window.len() <= Layout::most(bytes, pieces));
            }
        }
    }

    #[test]
    fn an_empty_message_has_one_empty_piece() {
        let layout = Layout::random(&mut Random::new(1), 0, 0, 4);
        assert_eq!(layout.capacity(), 0);
    }

    #[test]
    fn scattering_fills_pieces_in_order_and_nothing_else() {
        let layout = Layout { window: 10..20, pieces: vec![11..13, 15..18] };
        let mut image = [0; 10];
        layout.scatter(b"abcd", &mut image);
        assert_eq!(&image, b"\0ab\0\0cd\0\0\0");
    }

    #[test]
    fn bytes_are_named_for_people() {
        let layout = Layout { window: 10..20, pieces: vec![11..13, 15..18] };
        assert_eq!(layout.describe(15, 4), "byte 2 of 4 (piece 1 of 2)");
        assert_eq!(layout.describe(17, 4), "unused byte 4 of 4 (piece 1 of 2)");
        assert_eq!(layout.describe(13, 4), "a guard byte beside the message");
    }
}
