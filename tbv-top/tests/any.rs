//! Whatever happens, in whatever order, at whatever size: nothing breaks.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{fs, time::Duration};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::{buffer::Buffer, layout::Rect};
use tbv_core::Report;
use tbv_top::{
    app::{
        App, Message, Source,
        events::{Batch, Line},
        history::History,
        player::Player,
    },
    draw::{draw, look::Look},
    fixture,
    source::replay,
};

use common::recording;

fn key() -> impl Strategy<Value = KeyEvent> {
    let codes = prop_oneof![
        6 => proptest::char::range(' ', '~').prop_map(KeyCode::Char),
        1 => any::<char>().prop_map(KeyCode::Char),
        4 => proptest::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Backspace, KeyCode::Tab, KeyCode::BackTab, KeyCode::Up,
            KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home,
            KeyCode::End, KeyCode::F(1), KeyCode::F(2), KeyCode::F(6), KeyCode::Delete, KeyCode::Null,
        ]),
    ];
    (codes, 0_u8..8).prop_map(|(code, bits)| KeyEvent::new(code, KeyModifiers::from_bits_truncate(bits)))
}

/// An interval of a few processes, with numbers that can not be, and rows that come and go.
fn report() -> impl Strategy<Value = Report> {
    (1_u64..2_000, 0_u32..6, any::<u64>(), any::<bool>(), 0_u8..6).prop_map(
        |(number, processes, large, gone, change)| {
            let mut report = fixture::interval(number, processes);
            match change {
                0 => report.duration_ns = large,
                1 => report.calls.iter_mut().for_each(|call| call.count = large),
                2 => report.completions.iter_mut().for_each(|cq| (cq.produced, cq.entries) = (large, 0)),
                3 => report.system = None,
                4 => report.interval = None,
                _ => report.calls.truncate(1),
            }
            if gone && let Some(system) = &mut report.system {
                system.ended = vec![fixture::PID, fixture::PID + 1];
                system.devices.clear();
            }
            report.totals = None;
            report
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        6 => key().prop_map(Message::Key),
        3 => report().prop_map(|report| Message::Interval(Box::new(report))),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(columns, rows)| Message::Resized(columns, rows)),
        1 => any::<u64>().prop_map(|ns| Message::Passed(Duration::from_nanos(ns))),
        1 => (0_u32..5, any::<u64>(), any::<u64>()).prop_map(|(process, delivered, lost)| {
            let lines = vec![Line { op: fixture::HOSTILE.to_owned(), ..Line::default() }; 3];
            Message::Events(Batch { pid: fixture::PID + process, lines, delivered, lost })
        }),
        1 => ".{0,40}".prop_map(Message::Say),
        1 => ".{0,40}".prop_map(|why| Message::NoEvents(fixture::PID, why)),
        1 => ".{0,40}".prop_map(Message::LetGo),
        1 => Just("ib_uverbs").prop_map(|module| Message::Attached(vec![module.to_owned()])),
        1 => proptest::option::of(".{0,40}").prop_map(Message::Recording),
    ]
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        (1_u64..10_000).prop_map(|ms| Source::Live {
            holds: Vec::new(),
            let_go: None,
            interval: Duration::from_millis(ms)
        }),
        (0.001_f64..1e6).prop_map(|speed| Source::Replay(Player::new(speed))),
    ]
}

fn step() -> impl Strategy<Value = (Message, u16, u16)> {
    (message(), 0_u16..=200, 0_u16..=60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_and_no_size_breaks_it(
        source in source(),
        steps in proptest::collection::vec(step(), 1..60),
        color in any::<bool>(),
        unicode in any::<bool>(),
        small in any::<bool>(),
    ) {
        let mut app = App::new(source);
        if small {
            // So that intervals are merged all the time.
            app.history = History::with_most_bytes(100_000);
        }
        for (message, columns, rows) in steps {
            app.update(message);
            let area = Rect::new(0, 0, columns, rows);
            let mut buffer = Buffer::empty(area);
            draw(&app, Look { color, unicode }, area, &mut buffer);
        }
        prop_assert!(app.place() < app.history.len().max(1));
    }

    #[test]
    fn no_file_breaks_the_reader(
        cut in any::<proptest::sample::Index>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
    ) {
        // The first two intervals: a larger file is no other one.
        let demo = fs::read_to_string(recording()).unwrap();
        let mut bytes = demo.lines().take(2).collect::<Vec<_>>().join("\n").into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let path = std::env::temp_dir().join(format!("tbv-top-fuzz-{}", std::process::id()));
        fs::write(&path, &bytes).unwrap();
        if let Ok(recording) = replay::read(&path) {
            let mut app = App::new(Source::Replay(Player::new(1.0)));
            for report in recording.intervals {
                app.history.push(report, |_| {});
            }
            app.update(Message::Passed(Duration::from_secs(1)));
            app.whole = true;
            app.refresh();
            let area = Rect::new(0, 0, 132, 40);
            let look = Look { color: true, unicode: true };
            draw(&app, look, area, &mut Buffer::empty(area));
        }
        let _ = fs::remove_file(&path);
    }
}
