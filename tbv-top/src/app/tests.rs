//! The state machine, without drawing.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    App, Effect, Message, Source, View, Which, events::Batch, menu::Menu, player::Player, table::Key,
};
use crate::{
    fixture,
    keys::{Action, KEYS},
};

const SECOND: u64 = 1_000_000_000;

fn live() -> App {
    App::new(Source::Live { holds: Vec::new(), let_go: None, interval: Duration::from_secs(1) })
}

fn with_intervals(count: u64) -> App {
    let mut app = live();
    for number in 1..=count {
        app.update(Message::Interval(Box::new(fixture::interval(number, 3))));
    }
    app
}

fn replay(count: u64) -> App {
    let mut app = App::new(Source::Replay(Player::new(1.0)));
    for number in 1..=count {
        app.history.push(fixture::interval(number, 3), |_| {});
    }
    app.update(Message::Passed(Duration::ZERO));
    app
}

fn press(app: &mut App, code: KeyCode) -> Vec<Effect> {
    app.update(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_words(app: &mut App, words: &str) {
    words.chars().for_each(|c| drop(press(app, KeyCode::Char(c))));
}

/// Number of the interval that is shown.
fn number(app: &App) -> u64 {
    app.shown.as_ref().unwrap().report.interval.unwrap().number
}

#[test]
fn the_newest_is_shown_until_it_is_paused_and_stepped_back() {
    let mut app = with_intervals(5);
    assert_eq!((number(&app), app.is_paused()), (5, false));
    press(&mut app, KeyCode::Char(' '));
    app.update(Message::Interval(Box::new(fixture::interval(6, 3))));
    assert_eq!((number(&app), app.is_paused(), app.history.len()), (5, true, 6));
    type_words(&mut app, ",,");
    assert_eq!(number(&app), 3);
    type_words(&mut app, ".");
    assert_eq!(number(&app), 4);
    type_words(&mut app, "<");
    assert_eq!(number(&app), 1);
    type_words(&mut app, ">");
    assert_eq!(number(&app), 6);
    type_words(&mut app, "(");
    assert_eq!(number(&app), 1);
    type_words(&mut app, "0");
    app.update(Message::Interval(Box::new(fixture::interval(7, 3))));
    assert_eq!((number(&app), app.is_paused()), (7, false));
}

#[test]
fn what_is_merged_does_not_move_the_paused_place() {
    let mut app = live();
    app.history = super::history::History::with_most_bytes(400_000);
    for number in 1..=30 {
        app.update(Message::Interval(Box::new(fixture::interval(number, 3))));
    }
    type_words(&mut app, " ,");
    let shown = number(&app);
    for number in 31..=40 {
        app.update(Message::Interval(Box::new(fixture::interval(number, 3))));
        let at = app.history.get(app.place()).unwrap().report.interval.unwrap();
        assert!((at.start_ns..=at.end_ns).contains(&(shown * SECOND)), "{at:?}");
    }
}

#[test]
fn a_replay_plays_is_sought_and_begins_anew() {
    let mut app = replay(10);
    assert_eq!((number(&app), app.is_paused()), (1, false));
    app.update(Message::Passed(Duration::from_millis(3_500)));
    assert_eq!(number(&app), 3);
    type_words(&mut app, "+");
    app.update(Message::Passed(Duration::from_secs(1)));
    assert_eq!(number(&app), 5);
    type_words(&mut app, ",");
    assert_eq!((number(&app), app.is_paused()), (4, true));
    app.update(Message::Passed(Duration::from_secs(1)));
    assert_eq!(number(&app), 4);
    type_words(&mut app, " ");
    app.update(Message::Passed(Duration::from_secs(100)));
    assert_eq!((number(&app), app.is_paused()), (10, true));
    type_words(&mut app, " ");
    app.update(Message::Passed(Duration::ZERO));
    assert_eq!(number(&app), 1);
    assert!(type_words_effects(&mut app, "r").is_empty() && app.said.is_some());
    assert!(type_words_effects(&mut app, "D").is_empty() && app.said.is_some());
}

fn type_words_effects(app: &mut App, words: &str) -> Vec<Effect> {
    words.chars().flat_map(|c| press(app, KeyCode::Char(c))).collect()
}

#[test]
fn all_of_the_time_is_shown_by_a_key() {
    let mut app = with_intervals(5);
    type_words(&mut app, "t");
    let sum: u64 = (1..=5).map(|number| fixture::interval(number, 3).totals().0).sum();
    assert_eq!(app.shown.as_ref().unwrap().report.totals().0, sum);
    app.update(Message::Interval(Box::new(fixture::interval(6, 3))));
    let sum = sum + fixture::interval(6, 3).totals().0;
    assert_eq!(app.shown.as_ref().unwrap().report.totals().0, sum);
    type_words(&mut app, "t");
    assert_eq!(number(&app), 6);
}

#[test]
fn the_filter_is_typed_kept_or_taken_back() {
    let mut app = with_intervals(2);
    assert_eq!(app.keys(Which::Processes).len(), 3);
    type_words(&mut app, "/ib_send q");
    assert_eq!(app.table(Which::Processes).filter, "ib_send q");
    assert!(app.keys(Which::Processes).is_empty());
    press(&mut app, KeyCode::Backspace);
    press(&mut app, KeyCode::Backspace);
    press(&mut app, KeyCode::Enter);
    assert_eq!((app.menu.clone(), app.keys(Which::Processes).len()), (None, 1));
    type_words(&mut app, "/x");
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.table(Which::Processes).filter, "ib_send");
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.keys(Which::Processes).len(), 3);
}

#[test]
fn columns_and_order_are_chosen() {
    let mut app = with_intervals(2);
    type_words(&mut app, "s");
    press(&mut app, KeyCode::Home);
    press(&mut app, KeyCode::Enter);
    let pids =
        |app: &App| app.keys(Which::Processes).iter().map(|key| key.0 - fixture::PID).collect::<Vec<_>>();
    assert_eq!((app.table(Which::Processes).sort, pids(&app)), ("pid", vec![0, 1, 2]));
    type_words(&mut app, "I");
    assert_eq!(pids(&app), [2, 1, 0]);
    type_words(&mut app, "c");
    let first = app.table(Which::Processes).columns()[0];
    type_words(&mut app, " ");
    assert!(!app.table(Which::Processes).shows(first));
    assert_eq!(app.menu, Some(Menu::Columns(0)));
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.menu, None);
}

#[test]
fn the_selected_process_is_opened_and_stays_selected() {
    let mut app = with_intervals(2);
    type_words(&mut app, "j");
    let second = app.keys(Which::Processes)[1].clone();
    assert_eq!(app.selected_process(), Some(second.clone()));
    press(&mut app, KeyCode::Enter);
    assert_eq!((app.view, app.process.clone()), (View::Process, Some(second.clone())));
    assert_eq!(app.keys(Which::Operations).len(), 4);
    assert_eq!((app.keys(Which::ProcessQueues).len(), app.keys(Which::QueuePairs).len()), (4, 1));
    type_words(&mut app, "l");
    assert_eq!(app.focused(), Which::QueuePairs);
    press(&mut app, KeyCode::Esc);
    type_words(&mut app, "I");
    assert_eq!((app.view, app.selected_process()), (View::Processes, Some(second)));
}

#[test]
fn calls_are_streamed_only_while_somebody_looks() {
    let mut app = with_intervals(2);
    let Key(pid, ..) = app.selected_process().unwrap();
    assert_eq!(type_words_effects(&mut app, "4"), [Effect::Stream(Some(pid))]);
    app.update(Message::Events(Batch { pid, lines: Vec::new(), delivered: 9, lost: 2 }));
    assert_eq!((app.events.delivered, app.events.lost), (9, 2));
    type_words(&mut app, " ");
    assert!(app.events.paused && !app.is_paused());
    assert!(type_words_effects(&mut app, "4").is_empty());
    assert_eq!(type_words_effects(&mut app, "2"), [Effect::Stream(None)]);
    assert!(type_words_effects(&mut app, "3").is_empty());
    type_words(&mut app, "4");
    app.update(Message::NoEvents(pid, "why".to_owned()));
    assert_eq!(app.events.trouble.as_deref(), Some("why"));
}

#[test]
fn the_modules_are_let_go_and_taken_again() {
    let mut app = with_intervals(1);
    app.update(Message::Attached(vec!["ib_uverbs".to_owned()]));
    assert_eq!(type_words_effects(&mut app, "D"), [Effect::LetGo]);
    app.update(Message::LetGo("waits".to_owned()));
    let Source::Live { holds, let_go, .. } = &app.source else { panic!("not live") };
    assert!(holds.is_empty() && let_go.as_deref() == Some("waits"));
    assert!(type_words_effects(&mut app, "4").is_empty());
    assert_eq!(type_words_effects(&mut app, "1D"), [Effect::Attach]);
    app.update(Message::Attached(vec!["ib_uverbs".to_owned()]));
    assert!(matches!(&app.source, Source::Live { let_go: None, .. }));
    // A stream ends with the attachment.
    type_words(&mut app, "4");
    assert_eq!(type_words_effects(&mut app, "D"), [Effect::Stream(None), Effect::LetGo]);
}

#[test]
fn intervals_recordings_and_the_end_are_asked_for() {
    let mut app = with_intervals(1);
    let milliseconds = |ms| vec![Effect::Interval(Duration::from_millis(ms))];
    assert_eq!(type_words_effects(&mut app, "+"), milliseconds(500));
    assert_eq!(type_words_effects(&mut app, "-"), milliseconds(1_000));
    assert_eq!(type_words_effects(&mut app, "r"), [Effect::Record(true)]);
    app.update(Message::Recording(Some("x".to_owned())));
    assert_eq!(type_words_effects(&mut app, "r"), [Effect::Record(false)]);
    assert_eq!(app.act(Action::Suspend), [Effect::Suspend]);
    assert_eq!(type_words_effects(&mut app, "q"), [Effect::Quit]);
    let mut app = with_intervals(1);
    type_words(&mut app, "?");
    assert_eq!(type_words_effects(&mut app, "q"), [Effect::Quit]);
    assert_eq!(live().update(Message::Ended), [Effect::Quit]);
}

#[test]
fn every_key_of_the_table_can_be_pressed_before_anything_has_come() {
    for binding in KEYS {
        let mut app = live();
        app.act(binding.action);
        app.act(binding.action);
        let mut app = App::new(Source::Replay(Player::new(1.0)));
        app.act(binding.action);
        app.update(Message::Passed(Duration::from_secs(1)));
    }
}
