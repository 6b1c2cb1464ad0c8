//! Single calls of the selected process.

use std::collections::VecDeque;

/// Lines that are kept.
const KEPT: usize = 2_000;

/// One call, ready to be shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its begin, in nanoseconds since the stream began.
    pub time_ns: u64,
    /// Thread id.
    pub tid: u32,
    /// RDMA device.
    pub device: String,
    /// Operation.
    pub op: String,
    /// The queue that it names, such as `cq 3`.
    pub queue: Option<String>,
    /// Time inside it, in nanoseconds.
    pub latency_ns: Option<u64>,
    /// The error by name.
    pub errno: Option<String>,
}

/// What came of the stream since the last time.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Whose calls they are.
    pub pid: u32,
    /// The calls; of many, the last ones.
    pub lines: Vec<Line>,
    /// How many calls came.
    pub delivered: u64,
    /// How many did not fit the ring buffer.
    pub lost: u64,
}

/// The pane.
#[derive(Debug, Default)]
pub struct Events {
    /// Whose calls are streamed.
    pub pid: Option<u32>,
    /// The last calls, oldest first.
    pub lines: VecDeque<Line>,
    /// Whether lines are left as they are; calls are counted all the same.
    pub paused: bool,
    /// Calls that came.
    pub delivered: u64,
    /// Calls that did not fit the ring buffer.
    pub lost: u64,
    /// Lines up from the newest.
    pub scrolled: usize,
    /// Why there is no stream.
    pub trouble: Option<String>,
}

impl Events {
    /// Begins with another process, or ends.
    pub fn follow(&mut self, pid: Option<u32>) {
        if self.pid != pid {
            *self = Events { pid, ..Events::default() };
        }
    }

    /// Takes what came.
    pub fn add(&mut self, batch: Batch) {
        if self.pid != Some(batch.pid) {
            return;
        }
        self.delivered = self.delivered.saturating_add(batch.delivered);
        self.lost = self.lost.saturating_add(batch.lost);
        if self.paused {
            return;
        }
        self.lines.extend(batch.lines);
        let too_many = self.lines.len().saturating_sub(KEPT);
        self.lines.drain(..too_many);
    }

    /// Scrolls towards older lines, or newer ones.
    pub fn scroll(&mut self, by: isize) {
        self.scrolled = self.scrolled.saturating_add_signed(by).min(self.lines.len().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_whether_they_are_shown_or_not() {
        let batch = |pid| Batch { pid, lines: vec![Line::default(); 3], delivered: 5, lost: 1 };
        let mut events = Events::default();
        events.follow(Some(7));
        events.add(batch(7));
        events.add(batch(8));
        events.paused = true;
        events.add(batch(7));
        assert_eq!((events.lines.len(), events.delivered, events.lost), (3, 10, 2));
        events.follow(Some(7));
        assert_eq!(events.delivered, 10);
        events.follow(Some(9));
        assert_eq!((events.lines.len(), events.delivered, events.paused), (0, 0, false));
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut events = Events::default();
        events.follow(Some(7));
        for time_ns in 0..3_000 {
            let lines = vec![Line { time_ns, ..Line::default() }];
            events.add(Batch { pid: 7, lines, delivered: 1, lost: 0 });
        }
        assert_eq!((events.lines.len(), events.lines[0].time_ns, events.delivered), (KEPT, 1_000, 3_000));
    }
}
