//! How long tbv-top takes for a picture of much: 500 processes with 2,000 completion queues.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use ratatui::{buffer::Buffer, layout::Rect};
use tbv_top::{
    app::{App, Message, Source, View},
    draw::{draw, look::Look},
    fixture,
    keys::Action,
};

const PROCESSES: u32 = 500;
/// Intervals before it is measured: history is part of the picture.
const INTERVALS: u64 = 60;
const LOOK: Look = Look { color: true, unicode: true };

pub(crate) fn run(rounds: u32) -> Result<()> {
    let mut app = App::new(Source::Live {
        holds: vec!["ib_uverbs".to_owned()],
        let_go: None,
        interval: Duration::from_secs(1),
    });
    let mut taken = Vec::new();
    for number in 1..=INTERVALS {
        let report = Box::new(fixture::interval(number, PROCESSES));
        let begin = Instant::now();
        app.update(Message::Interval(report));
        taken.push(begin.elapsed());
    }
    let queues = app.shown.as_ref().map_or(0, |shown| shown.queues.len());
    ensure!(queues == 4 * PROCESSES as usize, "{queues} completion queues");
    let mut out = std::io::stdout().lock();
    writeln!(out, "{PROCESSES} processes, {queues} completion queues, {INTERVALS} intervals kept\n")?;
    writeln!(out, "{:<44} {:>10} {:>10}", "milliseconds", "median", "max")?;
    line(&mut out, "taking in an interval", &mut taken)?;
    for (columns, rows) in [(132, 40), (250, 80)] {
        for view in [View::Processes, View::Queues] {
            app.act(Action::Show(view));
            app.update(Message::Resized(columns, rows));
            let area = Rect::new(0, 0, columns, rows);
            let mut times: Vec<Duration> = (0..rounds).map(|_| frame(&app, area)).collect();
            line(&mut out, &format!("a picture of {columns}x{rows}, {}", view.title()), &mut times)?;
        }
    }
    writeln!(
        out,
        "\nhistory takes {:.1} MB (estimated; at most {:.0})",
        app.history.bytes() as f64 / 1e6,
        tbv_top::app::history::MOST_BYTES as f64 / 1e6
    )?;
    Ok(())
}

fn frame(app: &App, area: Rect) -> Duration {
    let begin = Instant::now();
    let mut buffer = Buffer::empty(area);
    draw(app, LOOK, area, &mut buffer);
    begin.elapsed()
}

fn line(out: &mut impl std::io::Write, what: &str, times: &mut [Duration]) -> Result<()> {
    times.sort_unstable();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    writeln!(out, "{what:<44} {:>10.2} {:>10.2}", ms(times.get(times.len() / 2)), ms(times.last()))?;
    Ok(())
}
