//! Playing a recording: where it is, and how fast it goes.

use std::time::Duration;

/// Speeds to choose from.
const SPEEDS: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1024.0];

/// The state of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Player {
    /// Where it is, in nanoseconds since the recording began.
    pub position_ns: u64,
    /// Seconds of the recording in a second.
    pub speed: f64,
    /// Whether it goes on.
    pub playing: bool,
}

impl Player {
    /// From its begin.
    pub fn new(speed: f64) -> Self {
        Player { position_ns: 0, speed, playing: true }
    }

    /// Goes on by so much time of ours; it stops at the end.
    pub fn pass(&mut self, time: Duration, end_ns: u64) {
        if !self.playing {
            return;
        }
        // A number that is too large becomes the largest.
        let more = (time.as_nanos() as f64 * self.speed) as u64;
        self.position_ns = self.position_ns.saturating_add(more);
        if self.position_ns >= end_ns {
            (self.position_ns, self.playing) = (end_ns, false);
        }
    }

    /// Takes the next speed.
    pub fn faster(&mut self) {
        self.speed = SPEEDS.into_iter().find(|speed| *speed > self.speed).unwrap_or(self.speed);
    }

    /// Takes the speed before.
    pub fn slower(&mut self) {
        self.speed = SPEEDS.into_iter().rev().find(|speed| *speed < self.speed).unwrap_or(self.speed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_at_any_speed_and_stops_at_the_end() {
        let mut player = Player::new(0.5);
        player.pass(Duration::from_secs(4), 10_000_000_000);
        assert_eq!(player.position_ns, 2_000_000_000);
        player.faster();
        player.faster();
        assert_eq!(player.speed, 2.0);
        player.slower();
        player.pass(Duration::from_secs(100), 10_000_000_000);
        assert_eq!((player.position_ns, player.playing), (10_000_000_000, false));
        player.pass(Duration::from_secs(1), 10_000_000_000);
        assert_eq!(player.position_ns, 10_000_000_000);
        let mut player = Player::new(f64::MAX);
        player.faster();
        player.pass(Duration::from_secs(1), u64::MAX - 1);
        assert!(!player.playing);
    }
}
