//! The state machine: what is shown, and how keys, intervals and time change it. It knows neither a terminal nor where
//! intervals come from.

pub mod events;
pub mod history;
pub mod menu;
pub mod player;
pub mod shown;
pub mod table;
#[cfg(test)]
mod tests;
mod update;

use std::time::Duration;

use crossterm::event::KeyEvent;
use tbv_core::{
    Report,
    fields::{call, completion_queue, device, process, queue_pair},
};

use self::{
    events::{Batch, Events},
    history::History,
    menu::Menu,
    player::Player,
    shown::{Shown, call_key, device_key, process_key, queue_key, queue_pair_key},
    table::{Key, TableState},
};

/// What fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Processes, and what the selected one does.
    Processes,
    /// All of one process.
    Process,
    /// Completion queues.
    Queues,
    /// Devices and their links.
    Devices,
    /// Single calls of one process.
    Events,
}

impl View {
    /// Those that have a tab.
    pub const TABS: [View; 4] = [View::Processes, View::Queues, View::Devices, View::Events];

    /// Its name.
    pub const fn title(self) -> &'static str {
        match self {
            View::Processes => "Processes",
            View::Process => "Process",
            View::Queues => "Completion queues",
            View::Devices => "Devices",
            View::Events => "Events",
        }
    }
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Processes.
    Processes,
    /// Operations of a process.
    Operations,
    /// Queue pairs of a process.
    QueuePairs,
    /// Completion queues of a process.
    ProcessQueues,
    /// All completion queues.
    Queues,
    /// Ports of devices.
    Devices,
}

/// Where intervals come from, and what that is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The kernel.
    Live {
        /// Modules that cannot be unloaded meanwhile.
        holds: Vec<String>,
        /// What it waits for, having let go.
        let_go: Option<String>,
        /// Length of an interval.
        interval: Duration,
    },
    /// A recording.
    Replay(Player),
}

/// What happens to the state.
#[derive(Debug)]
pub enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has so many columns and rows.
    Resized(u16, u16),
    /// An interval is over.
    Interval(Box<Report>),
    /// So much time has passed.
    Passed(Duration),
    /// Calls were streamed.
    Events(Batch),
    /// The stream of calls of this process does not work.
    NoEvents(u32, String),
    /// It traces, and so holds these modules.
    Attached(Vec<String>),
    /// It has let go, and waits for this.
    LetGo(String),
    /// A recording is written there, or is not any more.
    Recording(Option<String>),
    /// Something is to be said.
    Say(String),
    /// Nothing more will come.
    Ended,
}

/// What the state asks of the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// To end.
    Quit,
    /// To stop as Ctrl-Z does.
    Suspend,
    /// To draw all anew.
    Redraw,
    /// Intervals of this length.
    Interval(Duration),
    /// To detach, …
    LetGo,
    /// … and to attach again.
    Attach,
    /// To write a recording, or to end it.
    Record(bool),
    /// To stream the calls of this process only, or none.
    Stream(Option<u32>),
}

/// All that there is to be shown.
#[derive(Debug)]
pub struct App {
    /// Where it comes from.
    pub source: Source,
    /// What came.
    pub history: History,
    /// The place in it that is shown; nothing to follow the newest.
    cursor: Option<usize>,
    /// The rows of that place.
    pub shown: Option<Shown>,
    /// Numbers of all the time up to there, instead of the interval.
    pub whole: bool,
    /// What fills the screen.
    pub view: View,
    /// The process of [`View::Process`] and [`View::Events`].
    pub process: Option<Key>,
    /// The table of [`View::Process`] that keys go to.
    pub focus: Which,
    tables: [TableState; 6],
    /// What lies over it.
    pub menu: Option<Menu>,
    /// Single calls.
    pub events: Events,
    /// Where a recording is written.
    pub recording: Option<String>,
    /// What is to be said, until the next key.
    pub said: Option<String>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
}

impl App {
    /// With nothing to show yet.
    pub fn new(source: Source) -> Self {
        App {
            source,
            history: History::default(),
            cursor: None,
            shown: None,
            whole: false,
            view: View::Processes,
            process: None,
            focus: Which::Operations,
            tables: [
                TableState::new(process::FIELDS, "calls_per_second", true),
                TableState::new(call::FIELDS, "count", true),
                TableState::new(queue_pair::FIELDS, "qpn", false),
                TableState::new(completion_queue::FIELDS, "cqn", false),
                TableState::new(completion_queue::FIELDS, "occupancy_percent", true),
                TableState::new(device::FIELDS, "device", false),
            ],
            menu: None,
            events: Events::default(),
            recording: None,
            said: None,
            size: (80, 24),
        }
    }

    /// How a table is shown.
    pub fn table(&self, which: Which) -> &TableState {
        // There are as many as kinds.
        &self.tables[which as usize]
    }

    /// The same, to change it.
    pub fn table_mut(&mut self, which: Which) -> &mut TableState {
        &mut self.tables[which as usize]
    }

    /// The table that keys go to.
    pub fn focused(&self) -> Which {
        match self.view {
            View::Processes | View::Events => Which::Processes,
            View::Process => self.focus,
            View::Queues => Which::Queues,
            View::Devices => Which::Devices,
        }
    }

    /// The place in history that is shown.
    pub fn place(&self) -> usize {
        let last = self.history.len().saturating_sub(1);
        self.cursor.map_or(last, |at| at.min(last))
    }

    /// Whether what comes is not shown until someone wants it.
    pub fn is_paused(&self) -> bool {
        match &self.source {
            Source::Live { .. } => self.cursor.is_some(),
            Source::Replay(player) => !player.playing,
        }
    }

    /// Keys of a table's rows, in their order.
    pub fn keys(&self, which: Which) -> Vec<Key> {
        let Some(shown) = &self.shown else { return Vec::new() };
        let (state, seconds) = (self.table(which), shown.seconds);
        let process = self.process.clone().unwrap_or_default();
        match which {
            Which::Processes => {
                pick(&state.order(process::FIELDS, &shown.processes, seconds), &shown.processes, process_key)
            }
            Which::Queues => {
                pick(&state.order(completion_queue::FIELDS, &shown.queues, seconds), &shown.queues, queue_key)
            }
            Which::Devices => {
                pick(&state.order(device::FIELDS, &shown.devices, seconds), &shown.devices, device_key)
            }
            Which::Operations => {
                let rows: Vec<_> = shown.operations(&process).into_iter().cloned().collect();
                pick(&state.order(call::FIELDS, &rows, seconds), &rows, call_key)
            }
            Which::QueuePairs => {
                let rows: Vec<_> = shown.queue_pairs(&process).into_iter().cloned().collect();
                pick(&state.order(queue_pair::FIELDS, &rows, seconds), &rows, queue_pair_key)
            }
            Which::ProcessQueues => {
                let rows: Vec<_> = shown.queues_of(&process).into_iter().cloned().collect();
                pick(&state.order(completion_queue::FIELDS, &rows, seconds), &rows, queue_key)
            }
        }
    }

    /// The selected process.
    pub fn selected_process(&self) -> Option<Key> {
        let mut keys = self.keys(Which::Processes);
        let place = self.table(Which::Processes).place(&keys);
        (place < keys.len()).then(|| keys.swap_remove(place))
    }
}

fn pick<R>(order: &[usize], rows: &[R], key: fn(&R) -> Key) -> Vec<Key> {
    order.iter().filter_map(|at| rows.get(*at)).map(key).collect()
}
