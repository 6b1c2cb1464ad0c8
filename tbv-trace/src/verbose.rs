//! `-v`: what is attached, and what the eBPF programs log.

use std::cell::RefCell;

use anyhow::Result;
use tbv_core::{Tracer, tracer::ProgramLog};

/// What `-v` says, or nothing.
pub(crate) struct Log {
    wanted: bool,
    programs: RefCell<Option<ProgramLog>>,
}

impl Log {
    pub(crate) fn new(wanted: bool) -> Self {
        Log { wanted, programs: RefCell::new(None) }
    }

    pub(crate) fn wanted(&self) -> bool {
        self.wanted
    }

    /// After attaching.
    pub(crate) fn attached(&self, tracer: &mut Tracer) -> Result<()> {
        if !self.wanted {
            return Ok(());
        }
        for (hook, why) in tracer.passed_over() {
            say!("not by {hook}: {why}");
        }
        say!("attached by {}: {}", tracer.hook(), tracer.hook().description());
        *self.programs.borrow_mut() = Some(tracer.program_log()?);
        Ok(())
    }

    /// Shows what the programs said since the last time.
    pub(crate) fn flush(&self) {
        if let Some(programs) = &mut *self.programs.borrow_mut() {
            programs.flush();
        }
    }
}
