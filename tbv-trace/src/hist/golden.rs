//! Every form against a file that a person has looked at; `cargo xtask check-formats` gives the same files to other
//! implementations.

use super::{csv, fixture, hdr, heatmap::Heatmap, openmetrics, rows::By, text};
use crate::golden::same;

#[test]
fn hist_in_every_form() {
    let whole = fixture::report();
    let coarse = By { process: true, qp: false, opcode: false };
    same("hist.json", &(serde_json::to_string(&whole).unwrap() + "\n"));
    same("hist.txt", &text::render(&whole, By::ALL, false).unwrap());
    same("hist-unicode.txt", &text::render(&whole, coarse, true).unwrap());
    same("hist.csv", &String::from_utf8(csv::render(&whole, By::ALL, true).unwrap()).unwrap());
    same("hist.hlog", &String::from_utf8(hdr::render(&whole, By::ALL, true).unwrap()).unwrap());
    same("hist.om", &openmetrics::render(&whole, By::ALL).unwrap());
}

#[test]
fn hist_of_intervals() {
    let parts = fixture::intervals();
    let mut map = Heatmap::new("post_to_completion");
    let lines: Vec<String> = parts.iter().map(|part| map.line(part).unwrap()).collect();
    same("hist-heatmap.txt", &lines.concat());
    let log = parts.iter().enumerate().map(|(i, part)| hdr::render(part, By::ALL, i == 0).unwrap());
    same("hist-intervals.hlog", &String::from_utf8(log.collect::<Vec<_>>().concat()).unwrap());
    let lines = parts.iter().enumerate().map(|(i, part)| csv::render(part, By::ALL, i == 0).unwrap());
    same("hist-intervals.csv", &String::from_utf8(lines.collect::<Vec<_>>().concat()).unwrap());
    same("hist-interval.txt", &text::render(&parts[0], By::ALL, false).unwrap());
}

#[test]
fn hist_of_calls_alone_has_no_queues() {
    let mut calls = fixture::report();
    calls.spans.clear();
    calls.queue_pairs.clear();
    let text = text::render(&calls, By::ALL, false).unwrap();
    assert!(!text.contains("CREDIT STALLS") && !text.contains("completions "), "{text}");
}
