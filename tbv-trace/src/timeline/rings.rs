//! What a timeline is made of: both ring buffers, and the names of what they speak of.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use tbv_core::{
    Event, Moment, Names, OnlyDevices, Tracer,
    events::{Events, Moments},
    loss::Losses,
    report::{self, UNKNOWN_DEVICE, driver_device},
};

use crate::{events::realtime_of, timeline::convert::Timeline};

/// Most of each ring that is read before anything else is looked after.
const AT_ONCE: usize = 4096;

pub(crate) struct Rings {
    pub(crate) tracer: Tracer,
    pub(crate) timeline: Timeline,
    events: Events,
    moments: Moments,
    /// Read and not yet shown.
    calls: Vec<Event>,
    messages: Vec<Moment>,
    /// Whether a ring may hold more than was read of it.
    behind: bool,
    names: Names,
    /// Process ids, by number as calls name them.
    processes: HashMap<u32, u32>,
    /// Devices that were looked for in vain, by `dev_t`.
    unknown: HashSet<u32>,
    /// Devices whose messages are shown, which the kernel side cannot filter by.
    only: OnlyDevices,
    /// Names of devices, by the driver's index.
    devices: HashMap<u32, String>,
    /// What did not fit the rings so far, and when that was last asked.
    lost: u64,
    asked: u64,
}

impl Rings {
    pub(crate) fn new(mut tracer: Tracer, names: Names, only: OnlyDevices) -> Result<Self> {
        let (events, moments, begin) = (tracer.events()?, tracer.moments()?, tracer.started_ns());
        Ok(Rings {
            tracer,
            only,
            timeline: Timeline::new(begin, realtime_of(begin)),
            events,
            moments,
            calls: Vec::with_capacity(AT_ONCE),
            messages: Vec::with_capacity(AT_ONCE),
            behind: false,
            names,
            processes: HashMap::new(),
            unknown: HashSet::new(),
            devices: HashMap::new(),
            lost: 0,
            asked: begin,
        })
    }

    /// Adds some of what the rings hold; how much it was.
    pub(crate) fn drain(&mut self) -> Result<usize> {
        let count = self.read();
        let lost = self.tracer.ring_full()?;
        self.gap(lost);
        Ok(count)
    }

    /// Whether there may be more at once.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    /// Ends tracing, and adds all that is left.
    pub(crate) fn stop(&mut self) -> Result<Losses> {
        let now = tbv_core::monotonic_ns();
        let losses = self.tracer.stop()?.losses;
        while self.read() > 0 {}
        self.gap(losses.ring_full);
        let (names, devices) = (&self.names, &mut self.devices);
        self.timeline.finish(now, |index| {
            devices.entry(index).or_insert_with(|| driver_device(index, &names.devices)).clone()
        });
        Ok(losses)
    }

    fn read(&mut self) -> usize {
        let (mut calls, mut messages) = (std::mem::take(&mut self.calls), std::mem::take(&mut self.messages));
        self.events.drain(&mut calls, AT_ONCE);
        self.moments.drain(&mut messages, AT_ONCE);
        calls.iter().for_each(|call| self.call(call));
        messages.iter().for_each(|moment| self.moment(moment));
        let count = calls.len() + messages.len();
        self.behind = calls.len() == AT_ONCE || messages.len() == AT_ONCE;
        calls.clear();
        messages.clear();
        (self.calls, self.messages) = (calls, messages);
        count
    }

    fn call(&mut self, call: &Event) {
        let (tracer, timeline) = (&self.tracer, &mut self.timeline);
        let pid = *self.processes.entry(call.process).or_insert_with(|| {
            let process = tracer.process(call.process);
            process.map_or(0, |process| {
                timeline.process(process.pid, &report::comm(&process));
                process.pid
            })
        });
        // Once each: one that is gone from sysfs would cost a look at all of it for every call.
        if call.device != 0
            && !self.names.devices.contains_key(&call.device)
            && self.unknown.insert(call.device)
        {
            self.names.learn();
        }
        let device = self.names.devices.get(&call.device);
        self.timeline.call(call, pid, device.map_or(UNKNOWN_DEVICE, |device| &device.name));
    }

    fn moment(&mut self, moment: &Moment) {
        let names = &mut self.names;
        let device = self.devices.entry(moment.device).or_insert_with(|| {
            let known = driver_device(moment.device, &names.devices);
            if known != UNKNOWN_DEVICE {
                return known;
            }
            // It may have come since.
            names.learn();
            driver_device(moment.device, &names.devices)
        });
        if self.only.has(moment.device) {
            self.timeline.moment(moment, device);
        }
    }

    /// Says what the rings had no room for since the last time.
    fn gap(&mut self, lost: u64) {
        let now = tbv_core::monotonic_ns();
        let count = lost.saturating_sub(self.lost);
        if count > 0 {
            self.timeline.lost(self.asked, now, count);
        }
        (self.lost, self.asked) = (lost, now);
    }
}
