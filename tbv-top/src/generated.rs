//! What is made from the tables of options, keys and fields: completions and the manual page.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use crate::{cli::Cli, form, keys::KEYS};

const NAME: &str = "tbv-top";

/// The completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    script
}

/// The manual page.
pub(crate) fn man() -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(Cli::command()).title(NAME).render(&mut page)?;
    let mut more = Roff::new();
    more.control("SH", ["KEYS"]);
    for binding in KEYS {
        more.control("TP", []);
        more.text([bold(binding.names)]);
        more.text([roman(binding.help)]);
    }
    more.control("SH", ["COLUMNS"]);
    more.control("nf", []);
    for line in form::fields().lines() {
        more.text([roman(line)]);
    }
    more.control("fi", []);
    more.to_writer(&mut page)?;
    Ok(page)
}
