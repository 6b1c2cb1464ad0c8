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
        let less = |now: u64, then: u64| now.saturating_sub(then);
        Losses {
            total: 0,
            rows_full: less(self.rows_full, earlier.rows_full),
            histograms_full: less(self.histograms_full, earlier.histograms_full),
            threads_full: less(self.threads_full, earlier.threads_full),
            processes_full: less(self.processes_full, earlier.processes_full),
            unmatched_entry: less(self.unmatched_entry, earlier.unmatched_entry),
            unmatched_return: less(self.unmatched_return, earlier.unmatched_return),
            backward_clock: less(self.backward_clock, earlier.backward_clock),
            errnos_full: less(self.errnos_full, earlier.errnos_full),
            targets_full: less(self.targets_full, earlier.targets_full),
            extremes_raced: less(self.extremes_raced, earlier.extremes_raced),
            file_unreadable: less(self.file_unreadable, earlier.file_unreadable),
            ring_full: less(self.ring_full, earlier.ring_full),
            cqs_full: less(self.cqs_full, earlier.cqs_full),
            work_full: less(self.work_full, earlier.work_full),
            requests_full: less(self.requests_full, earlier.requests_full),
            completions_full: less(self.completions_full, earlier.completions_full),
            qps_full: less(self.qps_full, earlier.qps_full),
            spans_full: less(self.spans_full, earlier.spans_full),
            backward_span: less(self.backward_span, earlier.backward_span),
            probes_unreadable: less(self.probes_unreadable, earlier.probes_unreadable),
            fall_backs_full: less(self.fall_backs_full, earlier.fall_backs_full),
            in_flight: self.in_flight,
            recursion_misses: less(self.recursion_misses, earlier.recursion_misses),
            kretprobe_missed: less(self.kretprobe_missed, earlier.kretprobe_missed),
            hook_off: self.hook_off,
            left_running: self.left_running,
        }
        .summed()
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
