//! What is made from the command line's own description: completions and manual pages.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use crate::cli::{Cli, CompletionsArgs, ManArgs};

const NAME: &str = "tbv-trace";
/// What tracing costs, measured: docs/overhead.txt says how.
const OVERHEAD: &str = include_str!("../../docs/overhead.txt");

/// `tbv-trace completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// `tbv-trace man`.
pub(crate) fn man(args: &ManArgs) -> Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let Some(dir) = &args.dir else {
        io::stdout().lock().write_all(&page(command, NAME)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let write = |name: &str, page: Vec<u8>| {
        let file = Path::new(dir).join(format!("{name}.1"));
        fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))
    };
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("{NAME}-{}", sub.get_name());
        write(&name, page(sub.clone(), &name)?)?;
    }
    write(NAME, page(command, NAME)?)?;
    Ok(ExitCode::SUCCESS)
}

fn page(command: clap::Command, name: &str) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).title(name).render(&mut page)?;
    let mut overhead = Roff::new();
    overhead.control("SH", ["OVERHEAD"]);
    for paragraph in OVERHEAD.trim_end().split("\n\n") {
        overhead.control("PP", []);
        // Lines that are indented are a table and stay lines.
        let table = paragraph.starts_with(' ');
        if table {
            overhead.control("nf", []);
        }
        for line in paragraph.lines() {
            overhead.text([roman(line)]);
        }
        if table {
            overhead.control("fi", []);
        }
    }
    overhead.to_writer(&mut page)?;
    Ok(page)
}
