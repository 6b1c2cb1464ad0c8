//! The screens, against files that a person has looked at. `TBV_BLESS=1 cargo test -p tbv-top` writes them anew; look at
//! the difference.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{fs, path::PathBuf, time::Duration};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, backend::TestBackend, style::Color};
use tbv_top::{
    app::{
        App, Message, Source,
        events::{Batch, Line},
        player::Player,
    },
    draw::{draw, look::Look},
    fixture,
};

const UTF8: Look = Look { color: true, unicode: true };
const PLAIN: Look = Look { color: false, unicode: false };
const SIZES: [(u16, u16); 4] = [(132, 40), (80, 24), (40, 10), (20, 5)];

fn live() -> App {
    let mut app = App::new(Source::Live {
        holds: vec!["ib_uverbs".to_owned(), "thunderbolt_ibverbs".to_owned()],
        let_go: None,
        interval: Duration::from_secs(1),
    });
    for number in 1..=12 {
        app.update(Message::Interval(Box::new(fixture::interval(number, 4))));
    }
    app
}

fn press(app: &mut App, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        app.update(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
}

fn terminal(app: &App, look: Look, (columns, rows): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(app, look, frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

/// What is on the screen, without colours.
fn text(app: &App, look: Look, size: (u16, u16)) -> String {
    let terminal = terminal(app, look, size);
    let buffer = terminal.backend().buffer();
    let line =
        |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..size.1).map(line).collect()
}

fn same(name: &str, made: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TBV_BLESS").is_some() {
        fs::write(&file, made).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert!(golden == made, "{name} differs; this was made:\n{made}");
}

fn in_all_sizes(name: &str, app: &mut App) {
    for (columns, rows) in SIZES {
        app.update(Message::Resized(columns, rows));
        same(&format!("{name}-{columns}x{rows}.txt"), &text(app, UTF8, (columns, rows)));
    }
}

#[test]
fn processes() {
    in_all_sizes("processes", &mut live());
}

#[test]
fn one_process() {
    let mut app = live();
    press(&mut app, "\n");
    in_all_sizes("process", &mut app);
}

#[test]
fn completion_queues() {
    let mut app = live();
    press(&mut app, "2");
    in_all_sizes("queues", &mut app);
}

#[test]
fn devices() {
    let mut app = live();
    press(&mut app, "3");
    in_all_sizes("devices", &mut app);
}

#[test]
fn events() {
    let mut app = live();
    press(&mut app, "4");
    let pid = app.events.pid.unwrap();
    let line = |time_ns, errno: Option<&str>| Line {
        time_ns,
        tid: pid,
        device: fixture::DEVICE.to_owned(),
        op: "POLL_CQ".to_owned(),
        queue: Some("cq 3".to_owned()),
        latency_ns: errno.is_none().then_some(1_234),
        errno: errno.map(str::to_owned),
    };
    let lines = vec![line(1_000_000_005, None), line(1_000_002_000, Some("EINVAL"))];
    app.update(Message::Events(Batch { pid, lines, delivered: 70, lost: 5 }));
    in_all_sizes("events", &mut app);
}

#[test]
fn menus() {
    for (name, keys) in [("help", "?"), ("sort", "s"), ("columns", "c"), ("filter", "/ib_")] {
        let mut app = live();
        press(&mut app, keys);
        in_all_sizes(name, &mut app);
    }
}

#[test]
fn a_replay_that_has_lost_something() {
    let mut app = App::new(Source::Replay(Player::new(2.0)));
    for number in 1..=8 {
        let mut report = fixture::interval(number, 2);
        if number == 3 {
            report.loss.rows_full = 7;
            report.loss = report.loss.summed();
        }
        app.history.push(report, |_| {});
    }
    app.update(Message::Passed(Duration::from_millis(1_600)));
    in_all_sizes("replay", &mut app);
    press(&mut app, "t");
    same("replay-all-132x40.txt", &text(&app, UTF8, (132, 40)));
}

#[test]
fn plain_terminals_have_no_colour_and_nothing_beyond_ascii() {
    let mut app = live();
    for keys in ["", "\n", "\u{1b}2", "3", "4", "1?", "c"] {
        press(&mut app, keys);
        for size in SIZES {
            let terminal = terminal(&app, PLAIN, size);
            for cell in terminal.backend().buffer().content() {
                assert!(
                    cell.symbol().bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                    "{:?}",
                    cell.symbol()
                );
                assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
            }
        }
    }
    same("plain-80x24.txt", &text(&live(), PLAIN, (80, 24)));
}

#[test]
fn only_sixteen_colours_are_used() {
    let mut app = live();
    for keys in ["", "\n", "\u{1b}2", "3", "4", "1?"] {
        press(&mut app, keys);
        for cell in terminal(&app, UTF8, (132, 40)).backend().buffer().content() {
            for color in [cell.fg, cell.bg] {
                assert!(!matches!(color, Color::Rgb(..) | Color::Indexed(_)), "{color:?}");
            }
        }
    }
}

#[test]
fn hostile_names_are_shown_harmlessly() {
    for look in [UTF8, PLAIN] {
        let shown = text(&live(), look, (132, 40));
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert!(shown.contains("\\u{1b}[2J\\u{7}a\\u{202e}"), "{shown}");
    }
}
