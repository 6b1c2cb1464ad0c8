//! `tbv-top`: the live view of RDMA verbs. What is shown is a state ([`app`]) that intervals, keys and time change; where
//! intervals come from ([`source`]) and how they are drawn ([`draw`]) it does not know.

pub mod app;
mod batch;
mod cli;
pub mod draw;
mod exit;
pub mod fixture;
mod form;
mod generated;
pub mod keys;
mod picture;
mod run;
pub mod source;
mod terminal;

use std::{
    env,
    io::{IsTerminal as _, Write as _, stdin, stdout},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use tbv_core::{
    Options, Spans, devices,
    result_file::{ResultFile, is_same_file},
};

use crate::{
    app::{App, Message, Source, Which, player::Player},
    batch::Printer,
    cli::{Cli, Command, Format, ShowArgs, Table},
    draw::look::Look,
    form::Form,
    run::News,
    source::{live::Live, recorder::Recorder, replay},
};

/// The program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Some(Command::Fields) => print(form::fields().as_bytes()),
        Some(Command::Completions { shell }) => print(&generated::completions(*shell)),
        Some(Command::Man) => generated::man().and_then(|page| print(&page)),
        None => show(&cli.show),
    };
    done.unwrap_or_else(|error| exit::explain(&error))
}

fn print(bytes: &[u8]) -> Result<ExitCode> {
    stdout().lock().write_all(bytes)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether there is a terminal that can be drawn on.
fn can_draw() -> bool {
    stdout().is_terminal() && env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

fn show(args: &ShowArgs) -> Result<ExitCode> {
    let printed = args.batch || args.once || args.format.is_some() || !can_draw();
    if let Some(file) = &args.replay {
        let recording = replay::read(file)?;
        if let Some(picture) = &args.picture {
            return draw_picture(args, recording, picture);
        }
        if printed && args.at.is_some() && !args.once {
            bail!("--at prints one moment only with --once");
        }
        return match printed {
            true => batch::replay(recording, printer(args)?, args.at),
            false => show_recording(args, recording),
        };
    }
    let options = Options {
        hook: args.hook,
        filter: args.kernel_filter(),
        max_rows: args.max_rows,
        spans: Spans::Counted,
        cost: true,
        ..Options::default()
    };
    let filters = options.filter.words();
    // Before anything is attached: a wrong name costs nothing then.
    let printer = printed.then(|| printer(args)).transpose()?;
    let mut app = App::new(Source::Live { holds: Vec::new(), let_go: None, interval: args.interval });
    arrange(&mut app, args)?;
    there_is_a_device()?;
    let recorder = args.record.as_deref().map(Recorder::create).transpose()?;
    if let Some(printer) = printer {
        let duration = if args.once { Some(args.duration.unwrap_or(args.interval)) } else { args.duration };
        return batch::live(&options, filters, args.interval, duration, recorder, printer);
    }
    let news = News::new();
    let live = Live::start(options, filters, args.interval, recorder, news.send.clone())?;
    run::run(app, Some(live), news, Look::of_environment())
}

fn printer(args: &ShowArgs) -> Result<Printer> {
    let format = args.format.unwrap_or(Format::Text);
    let form = Form::new(format, args.view, &args.columns, args.sort.as_deref(), &args.filter, !args.once)?;
    Ok(Printer::new(form, !args.once, args.strict))
}

/// A machine with ib_uverbs and without a device has nothing to show; other reasons are told when attaching.
fn there_is_a_device() -> Result<()> {
    let root = Path::new("/");
    if devices::uverbs_loaded(root) && devices::list(root).is_empty() {
        return Err(tbv_core::Error::Filter(
            "there is no RDMA device on this machine. A software one: modprobe rdma_rxe && rdma link add rxe0 type rxe \
             netdev NETDEV\nA recording needs none: tbv-top --replay FILE"
                .to_owned(),
        )
        .into());
    }
    Ok(())
}

/// The view, order, filter and columns that were asked for.
fn arrange(app: &mut App, args: &ShowArgs) -> Result<()> {
    app.view = args.view.view();
    let which = match args.view {
        Table::Processes => Which::Processes,
        Table::Operations => Which::Operations,
        Table::QueuePairs => Which::QueuePairs,
        Table::CompletionQueues => Which::Queues,
        Table::Devices => Which::Devices,
    };
    let table = app.table_mut(which);
    args.filter.clone_into(&mut table.filter);
    form::apply(table, &args.columns, args.sort.as_deref())
}

fn loaded(args: &ShowArgs, recording: replay::Recording) -> Result<App> {
    let mut player = Player::new(args.speed);
    if let Some(at) = args.at {
        player.position_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        player.playing = false;
    }
    let mut app = App::new(Source::Replay(player));
    arrange(&mut app, args)?;
    for report in recording.intervals {
        app.history.push(report, |_| {});
    }
    app.update(Message::Passed(std::time::Duration::ZERO));
    Ok(app)
}

fn show_recording(args: &ShowArgs, recording: replay::Recording) -> Result<ExitCode> {
    if !stdin().is_terminal() && args.replay.as_deref() != Some(Path::new("-")) {
        bail!("keys come from a terminal, and standard input is none; --batch prints the recording");
    }
    run::run(loaded(args, recording)?, None, News::new(), Look::of_environment())
}

fn draw_picture(args: &ShowArgs, recording: replay::Recording, file: &Path) -> Result<ExitCode> {
    if args.replay.as_deref().is_some_and(|replayed| is_same_file(replayed, file)) {
        bail!("{} is the recording itself: it would be lost", file.display());
    }
    let app = loaded(args, recording)?;
    let picture = picture::svg(&app, args.size);
    let written = ResultFile::open(file).and_then(|mut file| file.write_all(picture.as_bytes()));
    written.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
