//! Where it is measured and how, and what all processes do together.

use ratatui::style::{Modifier, Style};
use tbv_core::fields::rate;

use super::paper::Paper;
use crate::app::{App, Source, View, shown::Shown};

/// Draws it, into one line or three.
pub(crate) fn draw(app: &App, paper: &mut Paper<'_>) {
    let look = paper.look;
    let (state, alarming) = state(app);
    let style = if alarming { look.alarm() } else { look.good() }.add_modifier(Modifier::BOLD);
    let x = paper.put(0, 0, "tbv-top ", look.title());
    let x = paper.put(x, 0, &state, style);
    let Some(shown) = &app.shown else {
        paper.put(x, 0, "  nothing measured yet", look.faint());
        return;
    };
    let x = paper.put(x, 0, &format!("  {}", time(app, shown)), Style::new());
    let e = &shown.report.environment;
    let mut devices: Vec<&str> = e.devices.iter().map(|device| device.name.as_str()).collect();
    devices.dedup();
    let devices = if devices.is_empty() { "no device".to_owned() } else { devices.join(" ") };
    paper.put(
        x,
        0,
        &format!("  kernel {}  hook {}  {devices}", plain(&e.kernel), plain(&e.hook)),
        Style::new(),
    );
    paper.put(0, 1, &how(app, shown), Style::new());
    sums(app, shown, &mut paper.lines(2, 1));
}

/// Names out of a file.
fn plain(text: &str) -> String {
    tbv_core::display::printable(text)
}

/// What goes on, and whether that is out of the ordinary.
fn state(app: &App) -> (String, bool) {
    let paused = app.is_paused();
    match &app.source {
        Source::Live { let_go: Some(_), .. } => ("LET GO".to_owned(), true),
        Source::Live { .. } if paused => ("PAUSED".to_owned(), true),
        Source::Live { interval, .. } => (format!("LIVE every {} s", interval.as_secs_f64()), false),
        Source::Replay(player) if paused => (format!("REPLAY {}x PAUSED", player.speed), true),
        Source::Replay(player) => (format!("REPLAY {}x", player.speed), false),
    }
}

/// Which time is shown.
fn time(app: &App, shown: &Shown) -> String {
    let end = app.history.get(app.place()).map_or(0, |entry| entry.end_ns) as f64 / 1e9;
    let all = app.history.end_ns() as f64 / 1e9;
    if app.whole {
        return format!("ALL 0.0-{end:.1} of {all:.1} s");
    }
    format!("{:.1}-{end:.1} of {all:.1} s", (end - shown.seconds).max(0.0))
}

/// How completions are taken out, what tracing costs, and what is left out.
fn how(app: &App, shown: &Shown) -> String {
    let queues = shown.queues.iter().filter(|row| row.queue.destroyed != Some(true));
    let (mapped, all) =
        queues.fold((0, 0), |(mapped, all), row| (mapped + usize::from(row.queue.mapped), all + 1));
    let path = match (mapped, all) {
        (_, 0) if shown.queues.is_empty() => "path n/a: no completion queue is known".to_owned(),
        (_, 0) => "path n/a: all completion queues are gone".to_owned(),
        (mapped, all) => format!("path mapped {mapped}, ioctl {} queues", all - mapped),
    };
    let cost = match shown.cost {
        Some((share, run)) => format!("cost {:.2} % of a CPU, {run:.0} ns a run", share * 100.0),
        None => "cost n/a".to_owned(),
    };
    let mut parts = vec![path, cost];
    let filters = &shown.report.filters;
    if !filters.is_empty() {
        parts.push(format!("only {}", plain(&filters.join(" "))));
    }
    if let Source::Live { holds, let_go: None, .. } = &app.source
        && !holds.is_empty()
    {
        parts.push(format!("holds {} (D lets go)", holds.join(" and ")));
    }
    parts.join("  ")
}

/// Calls and completions of all, and how they went.
fn sums(app: &App, shown: &Shown, paper: &mut Paper<'_>) {
    let look = paper.look;
    let a_second = |n: u64| match shown.seconds {
        // Nobody knows in which time.
        seconds if seconds <= 0.0 => "n/a".to_owned(),
        seconds => format!("{}/s", rate(n as f64 / seconds)),
    };
    // Calls on devices that don't tell of completions are no price of those that are told.
    let known = shown.processes.iter().filter_map(|row| Some((row.completions?, row.calls_told)));
    let sums = known
        .reduce(|(n, calls), (more, more_calls)| (n.saturating_add(more), calls.saturating_add(more_calls)));
    let mut text = format!("calls {}", a_second(shown.report.totals().0));
    text.push_str(&match sums {
        None => "  completions n/a".to_owned(),
        Some((0, _)) => format!("  completions {}", a_second(0)),
        Some((n, calls)) => {
            format!("  completions {}  {:.2} calls each", a_second(n), calls as f64 / n as f64)
        }
    });
    let x = paper.put(0, 0, &(text + "  "), Style::new().add_modifier(Modifier::BOLD));
    let room = usize::from(paper.area.width.saturating_sub(x)).min(120);
    let rates = app.history.rates(None, app.place(), room);
    paper.put(x, 0, look.sparkline(&rates, room.min(rates.len())).as_str(), look.bar());
}

/// The views, the one that is shown marked.
pub(crate) fn tabs(app: &App, paper: &mut Paper<'_>) {
    let look = paper.look;
    let shown = if app.view == View::Process { View::Processes } else { app.view };
    let mut x = 0;
    for (number, view) in View::TABS.into_iter().enumerate() {
        let name = format!(" {} {} ", number + 1, view.title());
        let (text, style) = match view == shown {
            true => (format!("[{}]", name.trim()), look.selected()),
            false => (name, Style::new()),
        };
        x = paper.put(x, 0, &text, style) + 1;
    }
}
