//! Which messages are sent.

use crate::random::Random;

/// A message to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub bytes: usize,
    pub send_pieces: usize,
    pub receive_pieces: usize,
    /// Bytes that the receiver has room for beyond the message.
    pub spare: usize,
    pub immediate: Option<u32>,
    pub signaled: bool,
}

impl Message {
    /// A message in one piece.
    pub fn plain(bytes: usize, immediate: Option<u32>) -> Self {
        Self { bytes, send_pieces: 1, receive_pieces: 1, spare: 0, immediate, signaled: true }
    }
}

/// Most bytes of [`Message::spare`].
pub(super) const MAX_SPARE: usize = 300;

/// A message by chance.
pub fn random_message(
    random: &mut Random,
    max_bytes: usize,
    send_sges: usize,
    receive_sges: usize,
) -> Message {
    Message {
        bytes: random.logarithmic(max_bytes),
        send_pieces: random.within(1..=send_sges),
        receive_pieces: random.within(1..=receive_sges),
        spare: if random.chance(2) { 0 } else { random.within(1..=MAX_SPARE) },
        immediate: random.chance(2).then(|| random.word() as u32),
        signaled: random.chance(2),
    }
}

/// Sizes up to `max` at which something may break: nothing, powers of two, and their neighbours.
pub fn sweep_sizes(max: usize) -> Vec<usize> {
    let mut sizes = vec![0, 1, 3, max];
    let mut power: usize = 2;
    while power <= max {
        sizes.extend([power - 1, power, power + 1]);
        power *= 2;
    }
    // Headers take a part of a 4096-byte frame: every remainder around it once.
    sizes.extend(3968..=4224);
    sizes.retain(|&size| size <= max);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_has_edges_and_ends_at_its_limit() {
        let sizes = sweep_sizes(8 << 20);
        for size in [0, 1, 2, 255, 256, 257, 4032, 4095, 4096, 4097, (8 << 20) - 1, 8 << 20] {
            assert!(sizes.contains(&size), "{size}");
        }
        assert!(sizes.is_sorted_by(|a, b| a < b));
        assert_eq!(sizes.last(), Some(&(8 << 20)));
        assert_eq!(sweep_sizes(5), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn chance_reaches_every_kind_of_message() {
        let mut random = Random::new(1);
        let messages: Vec<Message> = (0..1000).map(|_| random_message(&mut random, 5000, 3, 2)).collect();
        assert!(messages.iter().all(|m| (1..=5000).contains(&m.bytes)));
        assert!(messages.iter().any(|m| m.send_pieces == 3) && messages.iter().all(|m| m.send_pieces <= 3));
        assert!(
            messages.iter().any(|m| m.receive_pieces == 2) && messages.iter().all(|m| m.receive_pieces <= 2)
        );
        for (one, other) in [
            (messages.iter().any(|m| m.spare == 0), messages.iter().any(|m| m.spare > 0)),
            (messages.iter().any(|m| m.immediate.is_some()), messages.iter().any(|m| m.immediate.is_none())),
            (messages.iter().any(|m| m.signaled), messages.iter().any(|m| !m.signaled)),
        ] {
            assert!(one && other);
        }
    }
}
