//! Every single span of messages, as CSV.

use std::{io::Write, time::Duration};

use anyhow::{Context as _, Result};
use tbv_core::{
    Moment, MomentKind, NO_OPCODE, Names, OnlyDevices, Span, Tracer,
    events::Moments,
    messages::{opcode_name, queue_name, span_name},
    report::driver_device,
};

/// Between two looks at the ring while something comes.
const BUSY: Duration = Duration::from_millis(1);
/// And while nothing does.
const IDLE: Duration = Duration::from_millis(20);
/// Most that is read before anything else is looked after.
const AT_ONCE: usize = 4096;

const HEAD: [&str; 10] =
    ["time_ns", "event", "duration_ns", "pid", "device", "qpn", "queue", "opcode", "seq", "status"];

/// Samples on their way from the ring to a file.
pub(crate) struct Samples {
    ring: Moments,
    begin_ns: u64,
    /// Devices to keep; all if there are none.
    devices: OnlyDevices,
    read: Vec<Moment>,
    to: csv::Writer<Box<dyn Write>>,
    busy: bool,
}

impl Samples {
    pub(crate) fn begin(to: Box<dyn Write>, tracer: &mut Tracer, devices: &OnlyDevices) -> Result<Self> {
        let mut to = csv::Writer::from_writer(to);
        to.write_record(HEAD)?;
        Ok(Samples {
            ring: tracer.moments()?,
            begin_ns: tracer.started_ns(),
            devices: devices.clone(),
            read: Vec::with_capacity(AT_ONCE),
            to,
            busy: true,
        })
    }

    pub(crate) fn pause(&self) -> Duration {
        if self.busy { BUSY } else { IDLE }
    }

    /// Writes what has come.
    pub(crate) fn drain(&mut self, names: &Names) -> Result<()> {
        self.ring.drain(&mut self.read, AT_ONCE);
        self.busy = !self.read.is_empty();
        let moments = std::mem::take(&mut self.read);
        for moment in &moments {
            self.write(moment, names).context("cannot write the samples")?;
        }
        self.read = moments;
        self.read.clear();
        Ok(())
    }

    /// Writes the rest.
    pub(crate) fn finish(mut self, names: &Names) -> Result<()> {
        loop {
            self.drain(names)?;
            if !self.busy {
                break;
            }
        }
        self.to.flush().context("cannot write the samples")
    }

    fn write(&mut self, moment: &Moment, names: &Names) -> Result<()> {
        let is = |kind: MomentKind| moment.kind == kind as u32;
        let event = if is(MomentKind::Span) {
            Span::ALL.into_iter().find(|span| *span as u32 == moment.what).map_or("unknown", span_name)
        } else if is(MomentKind::Unpaired) {
            "unpaired_completion"
        } else {
            return Ok(());
        };
        let device = driver_device(moment.device, &names.devices);
        if !self.devices.has(moment.device) {
            return Ok(());
        }
        let known = |value: u64, known: bool| if known { value.to_string() } else { String::new() };
        let opcode =
            if moment.opcode == NO_OPCODE { String::new() } else { opcode_name(moment.queue, moment.opcode) };
        self.to.write_record([
            moment.time.saturating_sub(self.begin_ns).to_string(),
            event.to_owned(),
            known(moment.duration, is(MomentKind::Span) && moment.duration != u64::MAX),
            moment.pid.to_string(),
            device,
            moment.qpn.to_string(),
            queue_name(moment.queue).to_owned(),
            opcode,
            moment.seq.to_string(),
            moment.status.to_string(),
        ])?;
        Ok(())
    }
}
