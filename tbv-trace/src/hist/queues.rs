//! What happened on queue pairs and completion queues, beside how long it took.

use tbv_core::{Report, Span, messages::span_name};

use crate::text::{columns, printable};

/// Queue pairs, the sum of their completions, and what of completion queues cannot be timed; nothing if spans were not
/// measured.
pub(super) fn text(report: &Report) -> String {
    if report.queue_pairs.is_empty() && report.spans.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}\n{}", queue_pairs(report), completions(report), completion_queues(report))
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

/// Queues whose consumer the kernel does not see, and completions that were there before tracing began.
fn completion_queues(report: &Report) -> String {
    let name = span_name(Span::CompletionToConsumed);
    let lines = report.completions.iter().filter_map(|cq| {
        let what = match cq.untimed {
            _ if cq.mapped => format!("{name} n/a: polled in user space"),
            Some(n) if n > 0 => format!("{name} n/a for {n}: when they were put in is not known"),
            _ => return None,
        };
        Some(format!("{}\n", printable(&format!("cq {} of {}, pid {}: {what}", cq.cqn, cq.device, cq.pid))))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}
