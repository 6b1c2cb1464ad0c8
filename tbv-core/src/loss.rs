//! What was lost or misjudged, as reports say it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_common::Loss;

/// One number for every way to lose an event. All zero means that the counts are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Losses {
    /// Sum of all below.
    pub total: u64,
    /// Calls without a row: the row map was full.
    pub rows_full: u64,
    /// Calls counted in no histogram, though counted: no histogram slot was free.
    pub histograms_full: u64,
    /// Calls not followed: the thread map was full.
    pub threads_full: u64,
    /// Calls not counted: the process map was full.
    pub processes_full: u64,
    /// Entries whose return was never seen.
    pub unmatched_entry: u64,
    /// Returns whose entry was not seen, of threads that had entered calls before.
    pub unmatched_return: u64,
    /// Calls whose end lay before their begin: counted, not timed.
    pub backward_clock: u64,
    /// Failed calls whose errno was not recorded: the errno map was full.
    pub errnos_full: u64,
    /// New processes not followed.
    pub targets_full: u64,
    /// Updates of min or max given up.
    pub extremes_raced: u64,
    /// Calls whose device file could not be read.
    pub file_unreadable: u64,
    /// Events that did not fit the ring buffer.
    pub ring_full: u64,
    /// Completion queues not followed: the map was full.
    pub cqs_full: u64,
    /// Work requests not counted: the map was full.
    pub work_full: u64,
    /// Work requests whose post → completion is not known: the map was full.
    #[serde(default)]
    pub requests_full: u64,
    /// Completions whose way to their consumer is not known: the map was full.
    #[serde(default)]
    pub completions_full: u64,
    /// Queue pairs not followed: the map was full.
    #[serde(default)]
    pub qps_full: u64,
    /// Spans not counted: the map was full.
    #[serde(default)]
    pub spans_full: u64,
    /// Spans whose end lay before their begin: not counted.
    #[serde(default)]
    pub backward_span: u64,
    /// Polls that the provider told of and whose arguments could not be read, or could not be true.
    #[serde(default)]
    pub probes_unreadable: u64,
    /// Queues that fell back to system calls and were not counted: the map was full.
    #[serde(default)]
    pub fall_backs_full: u64,
    /// Calls that were still running when tracing ended.
    pub in_flight: u64,
    /// Program runs that the kernel skipped, the program being active on that CPU.
    pub recursion_misses: u64,
    /// Returns that the kernel missed (kretprobe); they also show as unmatched entries.
    pub kretprobe_missed: u64,
    /// 1 if the hook was switched off while tracing (`kernel.ftrace_enabled`, `kprobes/enabled`), or its module was
    /// loaded anew: nobody knows how many calls were missed.
    #[serde(default)]
    pub hook_off: u64,
    /// Processes that the command started and that outlived it: what they call later is not in the result.
    #[serde(default)]
    pub left_running: u64,
}

impl Losses {
    /// From the counters of the eBPF side, in the order of [`Loss`].
    pub fn from_counters(counters: impl Fn(Loss) -> u64) -> Self {
        Losses {
            total: 0,
            rows_full: counters(Loss::RowsFull),
            histograms_full: counters(Loss::HistogramsFull),
            threads_full: counters(Loss::ThreadsFull),
            processes_full: counters(Loss::ProcessesFull),
            unmatched_entry: counters(Loss::UnmatchedEntry),
            unmatched_return: counters(Loss::UnmatchedReturn),
            backward_clock: counters(Loss::BackwardClock),
            errnos_full: counters(Loss::ErrnosFull),
            targets_full: counters(Loss::TargetsFull),
            extremes_raced: counters(Loss::ExtremesRaced),
            file_unreadable: counters(Loss::FileUnreadable),
            ring_full: counters(Loss::RingFull),
            cqs_full: counters(Loss::CqsFull),
            work_full: counters(Loss::WorkFull),
            requests_full: counters(Loss::RequestsFull),
            completions_full: counters(Loss::CompletionsFull),
            qps_full: counters(Loss::QpsFull),
            spans_full: counters(Loss::SpansFull),
            backward_span: counters(Loss::BackwardSpan),
            probes_unreadable: counters(Loss::ProbesUnreadable),
            fall_backs_full: counters(Loss::FallBacksFull),
            in_flight: 0,
            recursion_misses: 0,
            kretprobe_missed: 0,
            hook_off: 0,
            left_running: 0,
        }
        .summed()
    }

    /// With `total` made anew.
    #[must_use]
    pub fn summed(mut self) -> Self {
        self.total = self.parts().iter().fold(0, |sum, (_, n)| sum.saturating_add(*n));
        self
    }

    /// What was lost since an earlier moment of the same run; what is in flight, off or running is so now.
    #[must_use]
    pub fn since(&self, earlier: &Losses) -> Self {
        let less = self.each(earlier, u64::saturating_sub);
        let Losses { in_flight, hook_off, left_running, .. } = *self;
        Losses { in_flight, hook_off, left_running, ..less }.summed()
    }

    /// What was lost in both of two times; that the hook was off is so, or not.
    #[must_use]
    pub fn plus(&self, other: &Losses) -> Self {
        Losses { hook_off: self.hook_off.max(other.hook_off), ..self.each(other, u64::saturating_add) }
            .summed()
    }

    fn each(&self, other: &Losses, of: fn(u64, u64) -> u64) -> Self {
        Losses {
            total: 0,
            rows_full: of(self.rows_full, other.rows_full),
            histograms_full: of(self.histograms_full, other.histograms_full),
            threads_full: of(self.threads_full, other.threads_full),
            processes_full: of(self.processes_full, other.processes_full),
            unmatched_entry: of(self.unmatched_entry, other.unmatched_entry),
            unmatched_return: of(self.unmatched_return, other.unmatched_return),
            backward_clock: of(self.backward_clock, other.backward_clock),
            errnos_full: of(self.errnos_full, other.errnos_full),
            targets_full: of(self.targets_full, other.targets_full),
            extremes_raced: of(self.extremes_raced, other.extremes_raced),
            file_unreadable: of(self.file_unreadable, other.file_unreadable),
            ring_full: of(self.ring_full, other.ring_full),
            cqs_full: of(self.cqs_full, other.cqs_full),
            work_full: of(self.work_full, other.work_full),
            requests_full: of(self.requests_full, other.requests_full),
            completions_full: of(self.completions_full, other.completions_full),
            qps_full: of(self.qps_full, other.qps_full),
            spans_full: of(self.spans_full, other.spans_full),
            backward_span: of(self.backward_span, other.backward_span),
            probes_unreadable: of(self.probes_unreadable, other.probes_unreadable),
            fall_backs_full: of(self.fall_backs_full, other.fall_backs_full),
            in_flight: of(self.in_flight, other.in_flight),
            recursion_misses: of(self.recursion_misses, other.recursion_misses),
            kretprobe_missed: of(self.kretprobe_missed, other.kretprobe_missed),
            hook_off: of(self.hook_off, other.hook_off),
            left_running: of(self.left_running, other.left_running),
        }
    }

    /// Name and value of every part.
    pub fn parts(&self) -> [(&'static str, u64); 26] {
        [
            ("rows_full", self.rows_full),
            ("histograms_full", self.histograms_full),
            ("threads_full", self.threads_full),
            ("processes_full", self.processes_full),
            ("unmatched_entry", self.unmatched_entry),
            ("unmatched_return", self.unmatched_return),
            ("backward_clock", self.backward_clock),
            ("errnos_full", self.errnos_full),
            ("targets_full", self.targets_full),
            ("extremes_raced", self.extremes_raced),
            ("file_unreadable", self.file_unreadable),
            ("ring_full", self.ring_full),
            ("cqs_full", self.cqs_full),
            ("work_full", self.work_full),
            ("requests_full", self.requests_full),
            ("completions_full", self.completions_full),
            ("qps_full", self.qps_full),
            ("spans_full", self.spans_full),
            ("backward_span", self.backward_span),
            ("probes_unreadable", self.probes_unreadable),
            ("fall_backs_full", self.fall_backs_full),
            ("in_flight", self.in_flight),
            ("recursion_misses", self.recursion_misses),
            ("kretprobe_missed", self.kretprobe_missed),
            ("hook_off", self.hook_off),
            ("left_running", self.left_running),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_part_and_the_total_is_their_sum() {
        let losses = Losses::from_counters(|loss| 1 << loss as u32);
        assert_eq!(losses.total, (1 << Loss::COUNT) - 1 - (1 << Loss::RanAtBegin as u32));
        let json = serde_json::to_value(&losses).unwrap();
        assert_eq!(json.as_object().unwrap().len(), losses.parts().len() + 1);
        for (name, value) in losses.parts() {
            assert_eq!(json[name], value, "{name}");
        }
    }
}
