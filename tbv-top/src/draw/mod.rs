//! The screen, made anew from the state every time.

mod events;
mod footer;
mod header;
mod histogram;
pub mod look;
mod menu;
pub mod paper;
mod table;

use ratatui::{buffer::Buffer, layout::Rect};
use tbv_core::{
    display::printable,
    fields::{ProcessRow, call, completion_queue, device, process, queue_pair},
};

use self::{look::Look, paper::Paper, table::Table};
use crate::app::{
    App, View, Which,
    shown::{Shown, call_key, device_key, process_key, queue_key, queue_pair_key},
    table::Key,
};

/// Draws all of it into an area of any size.
pub fn draw(app: &App, look: Look, area: Rect, buffer: &mut Buffer) {
    let mut paper = Paper::new(buffer, area, look);
    let height = paper.area.height;
    // What there is no room for is left out: first tabs, then lines of the header and footer.
    let header = match height {
        0..=4 => 0,
        5..=11 => 1,
        _ => 3,
    };
    let tabs = u16::from(height >= 9);
    let footer = match height {
        0..=2 => 0,
        3..=9 => 1,
        _ => 2,
    };
    header::draw(app, &mut paper.lines(0, header));
    header::tabs(app, &mut paper.lines(header, tabs));
    let top = header + tabs;
    let body = height.saturating_sub(top + footer);
    view(app, &mut paper.lines(top, body));
    menu::draw(app, &mut paper.lines(top, body));
    footer::draw(app, &mut paper.lines(height - footer, footer));
}

fn view(app: &App, paper: &mut Paper<'_>) {
    if app.view == View::Events {
        return events::draw(app, paper);
    }
    let Some(shown) = &app.shown else {
        paper.put(2, 1, "waiting for the first interval", paper.look.faint());
        return;
    };
    match app.view {
        View::Processes => overview(app, shown, paper),
        View::Process => one_process(app, shown, paper),
        View::Queues => queues(app, shown, paper),
        View::Devices | View::Events => devices(app, shown, paper),
    }
}

/// Processes; below them, if there is room, what the selected one does.
fn overview(app: &App, shown: &Shown, paper: &mut Paper<'_>) {
    let height = paper.area.height;
    let processes = match height {
        0..=13 => height,
        _ => (shown.processes.len().min(1000) as u16 + 1).clamp(4, height / 2),
    };
    let history = |row: &ProcessRow, most| app.history.rates(Some((row.pid, &row.comm)), app.place(), most);
    let table = Table {
        fields: process::FIELDS,
        rows: &shown.processes,
        state: app.table(Which::Processes),
        seconds: shown.seconds,
        key: process_key,
        focused: true,
        empty: "no process has called ib_uverbs yet",
        history: Some(&history),
    };
    table.draw(&mut paper.lines(0, processes));
    if processes < height
        && let Some(process) = app.selected_process()
    {
        details(app, shown, &process, None, &mut paper.lines(processes, height - processes));
    }
}

/// All of one process.
fn one_process(app: &App, shown: &Shown, paper: &mut Paper<'_>) {
    let process = app.process.clone().unwrap_or_default();
    let row = shown.processes.iter().find(|row| process_key(row) == process);
    let state = row.map_or("not seen in this time", |row| row.state.name());
    let cgroup = row.and_then(|row| row.cgroup.as_deref()).unwrap_or("n/a");
    let text = format!("{} {}: {state}, cgroup {cgroup}  (Esc goes back)", process.0, process.2);
    paper.put(0, 0, &printable(&text), paper.look.title());
    let height = paper.area.height.saturating_sub(1);
    details(app, shown, &process, Some(app.focus), &mut paper.lines(1, height));
}

/// Operations of a process beside the histogram of one of them; below, its completion queues and queue pairs.
fn details(app: &App, shown: &Shown, process: &Key, focus: Option<Which>, paper: &mut Paper<'_>) {
    let height = paper.area.height;
    let operations: Vec<_> = shown.operations(process).into_iter().cloned().collect();
    let queues: Vec<_> = shown.queues_of(process).into_iter().cloned().collect();
    let pairs: Vec<_> = shown.queue_pairs(process).into_iter().cloned().collect();
    // A title and a head each, and no more lines than there are rows.
    let part = |rows: usize| {
        if rows == 0 || height < 12 { 0 } else { (rows.min(1000) as u16 + 2).min(height / 4).max(3) }
    };
    let focused = |which| focus == Some(which);
    let (mut low, mut lower) = (part(queues.len()), part(pairs.len()));
    if height < 12 {
        // There is room for one of them.
        (low, lower) = match focus {
            Some(Which::ProcessQueues) => (height, 0),
            Some(Which::QueuePairs) => (0, height),
            _ => (0, 0),
        };
    }
    let top = height.saturating_sub(low + lower);
    let state = app.table(Which::Operations);
    let mut upper = paper.lines(0, top);
    let wide = upper.area.width;
    let split = if wide >= 76 {
        (u32::from(wide) * 11 / 20).max(u32::from(wide.saturating_sub(70))) as u16
    } else {
        wide
    };
    {
        let mut left = upper.columns(0, split.saturating_sub(1));
        let look = left.look;
        left.section("operations", look.title());
        let table = Table {
            fields: call::FIELDS,
            rows: &operations,
            state,
            seconds: shown.seconds,
            key: call_key,
            focused: focused(Which::Operations),
            empty: "no call in this time",
            history: None,
        };
        let lines = left.area.height.saturating_sub(1);
        table.draw(&mut left.lines(1, lines));
    }
    let order = state.order(call::FIELDS, &operations, shown.seconds);
    let keys: Vec<Key> = order.iter().filter_map(|at| operations.get(*at)).map(call_key).collect();
    let chosen = order.get(state.place(&keys)).and_then(|at| operations.get(*at));
    if split < wide
        && let Some(call) = chosen
    {
        histogram::draw(call, &mut upper.columns(split, wide - split));
    }
    let mut queues_part = paper.lines(top, low);
    let look = queues_part.look;
    queues_part.section("completion queues", look.title());
    Table {
        fields: completion_queue::FIELDS,
        rows: &queues,
        state: app.table(Which::ProcessQueues),
        seconds: shown.seconds,
        key: queue_key,
        focused: focused(Which::ProcessQueues),
        empty: "none that is known",
        history: None,
    }
    .draw(&mut queues_part.lines(1, low.saturating_sub(1)));
    let mut pairs_part = paper.lines(top + low, lower);
    pairs_part.section("queue pairs", look.title());
    Table {
        fields: queue_pair::FIELDS,
        rows: &pairs,
        state: app.table(Which::QueuePairs),
        seconds: shown.seconds,
        key: queue_pair_key,
        focused: focused(Which::QueuePairs),
        empty: "none that is known",
        history: None,
    }
    .draw(&mut pairs_part.lines(1, lower.saturating_sub(1)));
}

fn queues(app: &App, shown: &Shown, paper: &mut Paper<'_>) {
    Table {
        fields: completion_queue::FIELDS,
        rows: &shown.queues,
        state: app.table(Which::Queues),
        seconds: shown.seconds,
        key: queue_key,
        focused: true,
        empty: "no completion queue is known: only thunderbolt_ibverbs tells of them",
        history: None,
    }
    .draw(paper);
}

fn devices(app: &App, shown: &Shown, paper: &mut Paper<'_>) {
    Table {
        fields: device::FIELDS,
        rows: &shown.devices,
        state: app.table(Which::Devices),
        seconds: shown.seconds,
        key: device_key,
        focused: true,
        empty: "no device",
        history: None,
    }
    .draw(paper);
}
