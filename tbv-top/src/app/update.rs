//! How the state changes.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tbv_core::Report;

use super::{App, Effect, Message, Source, View, Which, menu::Menu, shown::Shown, table::Key};
use crate::keys::{self, Action, KEYS};

/// Lengths of an interval to choose from, in milliseconds.
const INTERVALS: [u64; 10] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000];
/// Characters of the longest filter.
const LONGEST: usize = 200;

impl App {
    /// Takes in what happened; what that asks of the world.
    pub fn update(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::Key(event) => return self.key(&event),
            Message::Resized(columns, rows) => self.size = (columns, rows),
            Message::Interval(report) => self.interval(*report),
            Message::Passed(time) => self.pass(time),
            Message::Events(batch) => self.events.add(batch),
            Message::NoEvents(pid, why) => {
                if self.events.pid == Some(pid) {
                    self.events.trouble = Some(why);
                }
            }
            Message::Attached(modules) => {
                if let Source::Live { holds, let_go, .. } = &mut self.source {
                    (*holds, *let_go) = (modules, None);
                }
            }
            Message::LetGo(waits_for) => {
                if let Source::Live { holds, let_go, .. } = &mut self.source {
                    holds.clear();
                    *let_go = Some(waits_for);
                }
            }
            Message::Recording(file) => self.recording = file,
            Message::Say(words) => self.said = Some(words),
            Message::Ended => return vec![Effect::Quit],
        }
        Vec::new()
    }

    fn interval(&mut self, report: Report) {
        let cursor = &mut self.cursor;
        self.history.push(report, |merged| {
            // The place that is shown stays the same interval, or the one that it became part of.
            if let Some(at) = cursor.as_mut().filter(|at| **at >= merged) {
                *at = at.saturating_sub(1);
            }
        });
        if self.cursor.is_none() {
            self.refresh();
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.history.end_ns();
        let Source::Replay(player) = &mut self.source else { return };
        player.pass(time, end);
        let at = self.history.at(player.position_ns);
        if self.cursor != Some(at) || self.shown.is_none() {
            self.cursor = Some(at);
            self.refresh();
        }
    }

    /// Makes the rows anew.
    pub fn refresh(&mut self) {
        self.shown = Shown::of(&self.history, self.place(), self.whole);
        for which in [Which::Processes, self.focused()] {
            let keys = self.keys(which);
            self.table_mut(which).settle(&keys);
        }
    }

    /// Shows another place in history, and stays there.
    fn go_to(&mut self, place: usize) {
        let place = place.min(self.history.len().saturating_sub(1));
        if let Source::Replay(player) = &mut self.source {
            player.playing = false;
            player.position_ns = self.history.get(place).map_or(0, |entry| entry.end_ns);
        }
        self.cursor = Some(place);
        self.refresh();
    }

    fn go_by(&mut self, by: isize) {
        self.go_to(self.place().saturating_add_signed(by));
    }

    fn key(&mut self, event: &KeyEvent) -> Vec<Effect> {
        if event.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.said = None;
        if let Some(Menu::Filter { before }) = self.menu.clone()
            && self.typed(event, &before)
        {
            return Vec::new();
        }
        keys::action(event).map_or_else(Vec::new, |action| self.act(action))
    }

    /// A key while the filter is typed; whether it was for that.
    fn typed(&mut self, event: &KeyEvent, before: &str) -> bool {
        let which = self.focused();
        let plain = !event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let table = self.table_mut(which);
        match event.code {
            KeyCode::Char(c) if plain => {
                if table.filter.chars().count() < LONGEST {
                    table.filter.push(c);
                }
            }
            KeyCode::Backspace => drop(table.filter.pop()),
            KeyCode::Enter => self.menu = None,
            KeyCode::Esc => {
                before.clone_into(&mut table.filter);
                self.menu = None;
            }
            _ => return false,
        }
        true
    }

    /// Does what a key asks for.
    pub fn act(&mut self, action: Action) -> Vec<Effect> {
        if self.menu.is_some() && self.in_menu(action) {
            return Vec::new();
        }
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Redraw => return vec![Effect::Redraw],
            Action::Help => self.menu = Some(Menu::Help(0)),
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-self.page()),
            Action::PageDown => self.step(self.page()),
            Action::First => self.step(isize::MIN + 1),
            Action::Last => self.step(isize::MAX),
            Action::Left => self.sideways(-1),
            Action::Right => self.sideways(1),
            Action::Open => self.open(),
            Action::Back => return self.back(),
            Action::NextView => return self.turn(1),
            Action::PreviousView => return self.turn(-1),
            Action::Show(view) => return self.show(view),
            Action::Filter => {
                self.menu = Some(Menu::Filter { before: self.table(self.focused()).filter.clone() })
            }
            Action::Sort => {
                let table = self.table(self.focused());
                let place = table.columns().iter().position(|column| column.name == table.sort);
                self.menu = Some(Menu::Sort(place.unwrap_or(0)));
            }
            Action::Invert => {
                let table = self.table_mut(self.focused());
                table.descending = !table.descending;
            }
            Action::Columns => self.menu = Some(Menu::Columns(0)),
            Action::Pause => self.pause(),
            Action::StepBack => self.go_by(-1),
            Action::StepForward => self.go_by(1),
            Action::LeapBack => self.go_by(-10),
            Action::LeapForward => self.go_by(10),
            Action::Oldest => self.go_to(0),
            Action::Newest => self.newest(),
            Action::Faster => return self.pace(true),
            Action::Slower => return self.pace(false),
            Action::Whole => {
                self.whole = !self.whole;
                self.refresh();
            }
            Action::Record => return self.record(),
            Action::LetGo => return self.let_go(),
        }
        Vec::new()
    }

    /// A key while a menu is open; whether it was for that.
    fn in_menu(&mut self, action: Action) -> bool {
        let which = self.focused();
        let columns = self.table(which).columns().to_vec();
        let last = match &self.menu {
            Some(Menu::Help(_)) => KEYS.len().saturating_sub(1),
            _ => columns.len().saturating_sub(1),
        };
        let Some(Menu::Help(place) | Menu::Sort(place) | Menu::Columns(place)) = &mut self.menu else {
            return false;
        };
        match action {
            Action::Up => *place = place.saturating_sub(1),
            Action::Down => *place = (*place + 1).min(last),
            Action::PageUp => *place = place.saturating_sub(10),
            Action::PageDown => *place = (*place + 10).min(last),
            Action::First => *place = 0,
            Action::Last => *place = last,
            Action::Open | Action::Pause => {
                let column = columns.get(*place).copied();
                match (&self.menu, column) {
                    (Some(Menu::Sort(_)), Some(column)) => {
                        self.table_mut(which).sort_by(column);
                        self.menu = None;
                    }
                    (Some(Menu::Columns(_)), Some(column)) if action == Action::Pause => {
                        self.table_mut(which).toggle(column);
                    }
                    _ => self.menu = None,
                }
            }
            Action::Quit | Action::Suspend | Action::Redraw => return false,
            _ => self.menu = None,
        }
        true
    }

    fn page(&self) -> isize {
        isize::from(self.size.1.clamp(4, 512) as i16) / 2
    }

    fn step(&mut self, by: isize) {
        if self.view == View::Events {
            return self.events.scroll(-by);
        }
        let which = self.focused();
        let keys = self.keys(which);
        self.table_mut(which).step(&keys, by);
    }

    fn sideways(&mut self, by: isize) {
        if self.view == View::Process {
            const ORDER: [Which; 3] = [Which::Operations, Which::QueuePairs, Which::ProcessQueues];
            let place = ORDER.iter().position(|which| *which == self.focus).unwrap_or(0);
            let place = place.saturating_add_signed(by).min(ORDER.len() - 1);
            self.focus = ORDER.get(place).copied().unwrap_or(Which::Operations);
            return;
        }
        let table = self.table_mut(self.focused());
        let most = table.columns().iter().filter(|column| table.shows(column)).count().saturating_sub(1);
        table.scrolled = table.scrolled.saturating_add_signed(by).min(most);
    }

    fn open(&mut self) {
        if self.view != View::Processes {
            return;
        }
        if let Some(process) = self.selected_process() {
            self.select(&process);
            (self.process, self.view, self.focus) = (Some(process), View::Process, Which::Operations);
        }
    }

    /// Follows this process from now on, wherever it is in the list.
    fn select(&mut self, process: &Key) {
        self.table_mut(Which::Processes).selected = Some(process.clone());
    }

    fn back(&mut self) -> Vec<Effect> {
        let which = self.focused();
        match self.view {
            View::Process | View::Events => return self.show(View::Processes),
            _ if !self.table(which).filter.is_empty() => self.table_mut(which).filter.clear(),
            _ => {}
        }
        Vec::new()
    }

    fn turn(&mut self, by: isize) -> Vec<Effect> {
        let count = View::TABS.len() as isize;
        let place = View::TABS.iter().position(|view| *view == self.view).unwrap_or(0) as isize;
        let next = (place + by).rem_euclid(count) as usize;
        self.show(View::TABS.get(next).copied().unwrap_or(View::Processes))
    }

    fn show(&mut self, view: View) -> Vec<Effect> {
        let before = self.events.pid;
        if view == View::Events {
            if self.view != View::Process {
                self.process = self.selected_process().or(self.process.take());
            }
            let live = matches!(&self.source, Source::Live { let_go: None, .. });
            let process = self.process.clone();
            if let Some(process) = &process {
                self.select(process);
            }
            self.events.follow(process.map(|process| process.0).filter(|_| live));
        } else {
            self.events.follow(None);
        }
        self.view = view;
        let now = self.events.pid;
        if now == before { Vec::new() } else { vec![Effect::Stream(now)] }
    }

    fn pause(&mut self) {
        if self.view == View::Events {
            self.events.paused = !self.events.paused;
            return;
        }
        let (place, end) = (self.place(), self.history.end_ns());
        match &mut self.source {
            Source::Live { .. } if self.cursor.is_some() => self.newest(),
            Source::Live { .. } => self.cursor = Some(place),
            Source::Replay(player) => {
                player.playing = !player.playing;
                // From the end, it begins anew.
                if player.playing && player.position_ns >= end {
                    player.position_ns = 0;
                }
            }
        }
    }

    fn newest(&mut self) {
        match &self.source {
            Source::Live { .. } => {
                self.cursor = None;
                self.refresh();
            }
            Source::Replay(_) => self.go_to(usize::MAX),
        }
    }

    fn pace(&mut self, faster: bool) -> Vec<Effect> {
        match &mut self.source {
            Source::Replay(player) if faster => player.faster(),
            Source::Replay(player) => player.slower(),
            Source::Live { interval, .. } => {
                let now = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
                let next = match faster {
                    true => INTERVALS.into_iter().rev().find(|ms| *ms < now),
                    false => INTERVALS.into_iter().find(|ms| *ms > now),
                };
                if let Some(ms) = next {
                    *interval = Duration::from_millis(ms);
                    return vec![Effect::Interval(*interval)];
                }
            }
        }
        Vec::new()
    }

    fn record(&mut self) -> Vec<Effect> {
        if let Source::Replay(_) = self.source {
            self.said = Some("this is a recording already".to_owned());
            return Vec::new();
        }
        vec![Effect::Record(self.recording.is_none())]
    }

    fn let_go(&mut self) -> Vec<Effect> {
        match &self.source {
            Source::Replay(_) => {
                self.said = Some("a recording holds no module".to_owned());
                Vec::new()
            }
            Source::Live { let_go: None, .. } => {
                let mut effects =
                    self.show(if self.view == View::Events { View::Processes } else { self.view });
                effects.push(Effect::LetGo);
                effects
            }
            Source::Live { let_go: Some(_), .. } => vec![Effect::Attach],
        }
    }
}
