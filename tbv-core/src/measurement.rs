//! One tracing run that gives reports: of intervals, and of the whole time.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    environment::Environment,
    error::Result,
    names::{Names, OnlyDevices},
    report::{Interval, Report},
    snapshot::Snapshot,
    system::{self, Cost, System},
    tracer::{Options, Tracer},
};

/// How often begins of spans are forgotten whose end will not come.
const TIDY_EVERY: Duration = Duration::from_secs(1);
/// How often [`Measurement::look`] does something.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is being traced.
pub struct Measurement {
    tracer: Tracer,
    names: Names,
    /// What the kernel side leaves out, as reports say it.
    filters: Vec<String>,
    devices: OnlyDevices,
    /// Where it is traced and how, as intervals tell it.
    environment: Environment,
    /// Whether reports also say what the system looks like.
    system: bool,
    begin: Instant,
    /// State at the begin of the interval.
    last: Snapshot,
    last_end_ns: u64,
    intervals: u64,
    looked: Instant,
    tidied: Instant,
    /// Processes whose end was noticed.
    gone: BTreeSet<u32>,
    /// What tracing cost up to the begin of the interval.
    cost: Cost,
}

/// What a run amounts to.
pub struct Finished {
    /// What came since the last interval's end.
    pub last: Report,
    /// The whole time.
    pub whole: Report,
    /// Names learnt.
    pub names: Names,
}

impl Measurement {
    /// Attaches; counting starts when this returns. `filters` is what `options` leave out, in the words of the command line.
    pub fn start(options: &Options, filters: Vec<String>) -> Result<Self> {
        let names = Names::now();
        let devices = names.only(&options.filter.devices);
        let tracer = Tracer::start(options)?;
        let begin = Instant::now();
        Ok(Measurement {
            environment: tracer.environment(&names.devices),
            tracer,
            names,
            filters,
            devices,
            system: false,
            begin,
            last: Snapshot::default(),
            last_end_ns: 0,
            intervals: 0,
            looked: begin,
            tidied: begin,
            gone: BTreeSet::new(),
            cost: Cost::default(),
        })
    }

    /// Reports will also say what the system looks like.
    #[must_use]
    pub fn with_system(mut self) -> Self {
        self.system = true;
        self
    }

    /// What traces.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// The same, to take its streams.
    pub fn tracer_mut(&mut self) -> &mut Tracer {
        &mut self.tracer
    }

    /// Names learnt so far.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Devices whose messages count, which the kernel side does not filter by.
    pub fn devices(&self) -> &OnlyDevices {
        &self.devices
    }

    /// When counting began.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// What has to be done often; it does nothing if that is not long ago.
    pub fn look(&mut self) -> Result<()> {
        if self.looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        self.looked = Instant::now();
        self.tracer.hook_was_off();
        if self.tidied.elapsed() >= TIDY_EVERY {
            self.tracer.tidy()?;
            self.tidied = Instant::now();
        }
        Ok(())
    }

    /// Ends an interval: what came in it.
    pub fn interval(&mut self) -> Result<Report> {
        self.look()?;
        let now = self.tracer.snapshot()?.on(&self.devices);
        let elapsed = self.elapsed();
        let system = self.system();
        let system = self.with_cost(system).map(|(interval, _)| interval);
        if self.names.keep_up(Path::new("/"), &now) {
            self.environment = self.tracer.environment(&self.names.devices);
        }
        Ok(self.interval_until(now, elapsed, system))
    }

    /// Ends tracing.
    pub fn finish(mut self) -> Result<Finished> {
        let duration = self.elapsed();
        // Before detaching, which may take long: it is that of the moment that `duration` ends at.
        let system = self.system();
        self.environment = self.tracer.environment(&self.names.devices);
        let total = self.tracer.stop()?.on(&self.devices);
        let (part, system) = self.with_cost(system).unzip();
        // Devices that came during the run are known now, those that went were known before.
        self.names.learn();
        self.environment.devices = self.names.devices.values().cloned().collect();
        let last = self.interval_until(total.clone(), duration, part);
        let mut whole = Report::new(&total, self.environment.clone(), &self.names);
        self.complete(&mut whole, system);
        whole.duration_ns = duration;
        Ok(Finished { last, whole, names: self.names })
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn interval_until(&mut self, now: Snapshot, elapsed: u64, system: Option<System>) -> Report {
        self.intervals += 1;
        let start_ns = self.last_end_ns;
        let mut report = Report::new(&now.since(&self.last), self.environment.clone(), &self.names);
        self.complete(&mut report, system);
        report.set_interval(Interval { number: self.intervals, start_ns, end_ns: elapsed });
        report.duration_ns = elapsed - start_ns;
        self.last = now;
        self.last_end_ns = elapsed;
        report
    }

    fn complete(&self, report: &mut Report, system: Option<System>) {
        report.filters.clone_from(&self.filters);
        report.system = system;
    }

    /// The system now, but for the cost: as the interval that ends tells it, and as all the time does.
    fn system(&mut self) -> Option<(System, System)> {
        if !self.system {
            return None;
        }
        let root = Path::new("/");
        let mut interval = System::read(root);
        let mut all = interval.clone();
        if self.tracer.knows_pids() {
            let pids: BTreeSet<u32> = self.last.processes.values().map(|process| process.pid).collect();
            let gone = system::ended(root, &pids);
            interval.ended = gone.difference(&self.gone).copied().collect();
            all.ended = gone.iter().copied().collect();
            self.gone = gone;
        }
        Some((interval, all))
    }

    /// The same, with what tracing had cost at the last snapshot.
    fn with_cost(&mut self, system: Option<(System, System)>) -> Option<(System, System)> {
        let (mut interval, mut all) = system?;
        all.cost = self.tracer.cost();
        interval.cost = all.cost.map(|cost| cost.since(self.cost));
        self.cost = all.cost.unwrap_or_default();
        Some((interval, all))
    }
}
