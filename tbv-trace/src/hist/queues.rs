//! What happened on queue pairs and completion queues, beside how long it took.

use tbv_core::{Report, Span, messages::span_name, report::Completions};

use crate::text::{columns, polls, printable};

/// Queue pairs, the sum of their completions, and what of completion queues cannot be timed, if spans were measured; and
/// what the provider's probes tell.
pub(super) fn text(report: &Report) -> String {
    if report.queue_pairs.is_empty() && report.spans.is_empty() {
        return polls(report);
    }
    let (pairs, sum, polls) = (queue_pairs(report), completions(report), polls(report));
    format!("\n{pairs}\n{sum}{polls}\n{}", completion_queues(report))
}

fn queue_pairs(report: &Report) -> String {
    let head = vec![
        "PID",
        "COMM",
        "DEVICE",
        "QP",
        "POSTED",
        "COMPLETED",
        "UNSIGNALLED",
        "UNKNOWN",
        "UNSIGNALLED FAILED",
        "FORGOTTEN",
        "OPEN",
        "OVERFLOWED",
        "RESENT: TIMEOUT",
        "SEQUENCE ERROR",
        "RNR",
        "PEER HAD NO RECEIVE",
        "CREDIT STALLS",
    ];
    let rows = report.queue_pairs.iter().map(|qp| {
        let mut row = vec![
            qp.pid.to_string(),
            qp.comm.clone(),
            qp.device.clone(),
            format!("{}{}", qp.qpn, if qp.destroyed { " (gone)" } else { "" }),
        ];
        let counts = [
            qp.posted,
            qp.completed,
            qp.unsignalled,
            qp.unknown,
            qp.unsignalled_failed,
            qp.forgotten,
            qp.open,
            qp.overflowed,
            qp.retransmits_timeout,
            qp.retransmits_sequence_error,
            qp.retransmits_rnr,
            qp.rnr,
            qp.credit_stalls,
        ];
        row.extend(counts.map(|n| n.to_string()));
        row
    });
    columns(head, rows, 4)
}

/// Every completion of a queue pair, by what is known of it.
fn completions(report: &Report) -> String {
    let name = span_name(Span::PostToCompletion);
    let add = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
    let timed = add(&mut report.spans.iter().filter(|span| span.span == name).map(|span| span.count));
    let seen = add(&mut report.queue_pairs.iter().map(|qp| qp.completed));
    let unknown = add(&mut report.queue_pairs.iter().map(|qp| qp.unknown));
    let failed = add(&mut report.queue_pairs.iter().map(|qp| qp.unsignalled_failed));
    // Counted apart from the spans, so that a span that was lost shows.
    // An interval's numbers are of slightly different moments.
    let lost = if report.interval.is_some() { 0 } else { seen.saturating_sub(timed) };
    let all = add(&mut [timed, unknown, failed, lost].into_iter());
    let lost = if lost == 0 { String::new() } else { format!(" + {lost} lost") };
    format!("completions {all} = {timed} timed + {unknown} unknown + {failed} unsignalled and failed{lost}\n")
}

/// Completions of which is not known how long they waited, by queue.
fn completion_queues(report: &Report) -> String {
    let name = span_name(Span::CompletionToConsumed);
    let probed = !report.environment.probes.is_empty();
    let lines = report.completions.iter().flat_map(|cq| {
        unknown(cq, probed).into_iter().map(move |what| {
            let text = format!("cq {} of {}, pid {}: {name} n/a{what}", cq.cqn, cq.device, cq.pid);
            format!("{}\n", printable(&text))
        })
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

/// Why that is, each with how many of a queue it is of if it is not of all.
fn unknown(cq: &Completions, probed: bool) -> Vec<String> {
    let mut why = Vec::new();
    // Of an interval it is not known how many were taken in user space.
    match (cq.polled, cq.consumed_in_user_space) {
        // Nobody waited.
        (None, Some(0)) => {}
        (None, _) if cq.mapped && probed => {
            why.push(": polled in user space, and no probe told of it".to_owned());
        }
        (None, _) if cq.mapped => why.push(": polled in user space; --usdt tells".to_owned()),
        (Some(polled), Some(taken)) if taken > polled => {
            why.push(format!(" for {}: taken in user space, and no probe told of it", taken - polled));
        }
        _ => {}
    }
    if let Some(n) = cq.untimed.filter(|n| *n > 0) {
        why.push(format!(" for {n}: when they were put in is not known"));
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hist::fixture;

    #[test]
    fn what_is_not_known_of_a_queue_is_said() {
        let report = fixture::report();
        let polled = report.completions.iter().find(|cq| cq.mapped).unwrap();
        let untold = Completions { polled: None, ..polled.clone() };
        let told = Completions { polled: Some(1_500), ..polled.clone() };
        assert_eq!(unknown(&untold, false), [": polled in user space; --usdt tells"]);
        assert_eq!(unknown(&untold, true), [": polled in user space, and no probe told of it"]);
        assert_eq!(unknown(&told, true), [""; 0]);
        let idle = Completions { consumed_in_user_space: Some(0), ..untold.clone() };
        assert_eq!([unknown(&idle, true), unknown(&idle, false)], [Vec::<String>::new(), Vec::new()]);
        let of_an_interval = Completions { consumed_in_user_space: None, ..untold };
        assert_eq!(unknown(&of_an_interval, true), [": polled in user space, and no probe told of it"]);
        let some = Completions { polled: Some(1_400), untimed: Some(7), ..polled.clone() };
        let expected = [
            " for 100: taken in user space, and no probe told of it",
            " for 7: when they were put in is not known",
        ];
        assert_eq!(unknown(&some, true), expected);
        let interval = Completions { consumed_in_user_space: None, untimed: None, ..some };
        assert_eq!(unknown(&interval, true), [""; 0]);
    }
}
