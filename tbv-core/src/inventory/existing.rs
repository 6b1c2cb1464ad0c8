//! Makes known to the programs what existed before they could see it begin.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};

use aya::{
    Ebpf, Pod,
    maps::{HashMap, MapError},
};
use tbv_common::{Before, Cq, CqKey, Qp, QpKey};

use super::{
    Inventory, Listed, Object, is_gone,
    netlink::{Command, Netlink, Source},
};
use crate::{
    error::{Error, Result},
    filter::{self, Filter},
    snapshot,
};

/// `BPF_NOEXIST` (`linux/bpf.h`): the program that sees it begin may be faster.
const NOEXIST: u64 = 1;

/// Why nothing is known from inside of a container.
const OTHER_NAMESPACE: &str =
    "rdma netlink tells process ids of this pid namespace, and events those of the initial one";

/// What was entered into the maps of the programs, and what could not be.
pub(crate) struct Existing<'a> {
    filter: &'a Filter,
    cqs: Entered<CqKey, Cq>,
    /// `None` if queue pairs are of no interest.
    qps: Option<Entered<QpKey, Qp>>,
    /// Whether netlink is asked.
    asked: bool,
    left_out: Option<String>,
}

impl<'a> Existing<'a> {
    /// Nothing yet; `qps` says whether queue pairs count.
    pub(crate) fn none(filter: &'a Filter, qps: bool) -> Self {
        let qps = qps.then(|| Entered::new("QPS", Command::Qps));
        Existing { filter, cqs: Entered::new("CQS", Command::Cqs), qps, asked: false, left_out: None }
    }

    /// Before anything counts: enters what exists. `own_ids` says that we see processes by the ids that the kernel's
    /// events carry.
    pub(crate) fn enter(&mut self, ebpf: &mut Ebpf, own_ids: bool) -> Result<()> {
        if self.filter.descendants {
            return Ok(()); // Nothing of theirs exists.
        }
        if !own_ids {
            self.left_out = Some(OTHER_NAMESPACE.to_owned());
            return Ok(());
        }
        self.asked = true;
        self.ask(ebpf).map(drop)
    }

    /// Once events count: enters what came in between, and takes out what went. From now on the programs see both.
    /// Says what is left out, if anything is.
    ///
    /// A kernel takes a queue off its list before or after it has the driver end it. Where after, one that ends in
    /// just that moment may stay, with nothing counted.
    pub(crate) fn settle(mut self, ebpf: &mut Ebpf) -> Result<Option<String>> {
        if !self.asked {
            return Ok(self.left_out);
        }
        let (cqs, qps) = (self.cqs.keys(), self.qps.as_ref().map(Entered::keys).unwrap_or_default());
        if let Some((mut source, now)) = self.ask(ebpf)? {
            self.cqs.tidy(ebpf, &mut source, |key| cqs.contains(key) && now.cqs.contains_key(key))?;
            if let Some(entered) = &self.qps {
                entered.tidy(ebpf, &mut source, |key| qps.contains(key) && now.qps.contains_key(key))?;
            }
        }
        Ok(self.left_out)
    }

    /// Enters what exists and is not known. That netlink does not answer is no error of tracing.
    fn ask(&mut self, ebpf: &mut Ebpf) -> Result<Option<(Netlink, Inventory)>> {
        let answer = Netlink::open()
            .and_then(|mut source| Ok((Inventory::ask(&mut source, self.qps.is_some())?, source)));
        match answer {
            Ok((inventory, source)) => {
                self.add(ebpf, &inventory)?;
                Ok(Some((source, inventory)))
            }
            Err(error) => {
                self.left_out = Some(format!("rdma netlink does not tell: {error}"));
                Ok(None)
            }
        }
    }

    fn add(&mut self, ebpf: &mut Ebpf, inventory: &Inventory) -> Result<()> {
        let targets = snapshot::targets(ebpf)?;
        let wants = |pid: u32, device: &str| self.filter.wants(Path::new("/"), pid, device, &targets);
        let cqs = Wanted::of(&inventory.cqs, wants);
        let qps = self.qps.as_ref().map(|_| Wanted::of(&inventory.qps, wants)).unwrap_or_default();
        let ownerless = cqs.ownerless + qps.ownerless;
        let mut fit = true;
        for (key, pid, object) in cqs.objects {
            let state = object.what;
            let cq = Cq {
                pid,
                entries: state.entries,
                mapped: state.mapped.into(),
                produced: state.produced,
                consumed: state.consumed,
                before: Before::Untouched as u32,
                produced_before: state.produced,
                consumed_before: state.consumed,
                ..Cq::default()
            };
            fit &= self.cqs.add(ebpf, key, object.listed, cq)?;
        }
        for (key, pid, object) in qps.objects {
            if let Some(entered) = &mut self.qps {
                fit &= entered.add(ebpf, key, object.listed, Qp { pid, ..Qp::default() })?;
            }
        }
        self.left_out = if !fit {
            Some("there are more than the maps hold".to_owned())
        } else {
            (ownerless > 0).then(|| format!("{ownerless} whose creators have ended"))
        };
        Ok(())
    }
}

/// Objects that count.
struct Wanted<'a, K, T> {
    /// With the process that has each.
    objects: Vec<(K, u32, &'a Object<T>)>,
    /// How many there are whose process cannot be told.
    ownerless: usize,
}

impl<K, T> Default for Wanted<'_, K, T> {
    fn default() -> Self {
        Wanted { objects: Vec::new(), ownerless: 0 }
    }
}

impl<'a, K: Copy, T> Wanted<'a, K, T> {
    fn of(objects: &'a BTreeMap<K, Object<T>>, wants: impl Fn(u32, &str) -> bool) -> Self {
        let mut found = Wanted::default();
        for (key, object) in objects {
            match object.thread.and_then(|thread| filter::process_of(thread).ok()) {
                Some(pid) if wants(pid, &object.device) => found.objects.push((*key, pid, object)),
                Some(_) => {}
                None => found.ownerless += 1,
            }
        }
        found
    }
}

/// Objects of one kind that were entered into a map, as they were.
struct Entered<K, V> {
    map: &'static str,
    command: Command,
    objects: BTreeMap<K, (Listed, V)>,
}

impl<K: Pod + Ord, V: Pod + PartialEq> Entered<K, V> {
    fn new(map: &'static str, command: Command) -> Self {
        Entered { map, command, objects: BTreeMap::new() }
    }

    fn keys(&self) -> BTreeSet<K> {
        self.objects.keys().copied().collect()
    }

    /// Enters one unless it is known; whether there was room.
    fn add(&mut self, ebpf: &mut Ebpf, key: K, listed: Listed, value: V) -> Result<bool> {
        let mut map = self.open(ebpf)?;
        match map.insert(key, value, NOEXIST) {
            Ok(()) => {
                self.objects.insert(key, (listed, value));
                Ok(true)
            }
            Err(MapError::SyscallError(e)) if e.io_error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
            Err(MapError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::E2BIG) => Ok(false),
            Err(e) => Err(Error::Map(self.map, e)),
        }
    }

    /// Takes out those that are gone, and of whose end no program knows: nothing has changed them.
    fn tidy(&self, ebpf: &mut Ebpf, source: &mut impl Source, exists: impl Fn(&K) -> bool) -> Result<()> {
        let mut map = self.open(ebpf)?;
        for (key, (listed, entered)) in self.objects.iter().filter(|(key, _)| !exists(key)) {
            if !is_gone(source, self.command, *listed) {
                continue;
            }
            if map.get(key, 0).is_ok_and(|now| now == *entered) {
                map.remove(key).map_err(|e| Error::Map(self.map, e))?;
            }
        }
        Ok(())
    }

    fn open<'a>(&self, ebpf: &'a mut Ebpf) -> Result<HashMap<&'a mut aya::maps::MapData, K, V>> {
        let map = ebpf.map_mut(self.map).ok_or(Error::Missing(self.map))?;
        HashMap::try_from(map).map_err(|e| Error::Map(self.map, e))
    }
}
