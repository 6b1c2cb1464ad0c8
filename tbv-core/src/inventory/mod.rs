//! Completion queues and queue pairs of our own driver that exist already, as rdma netlink lists them. The programs
//! learn of later ones by themselves.

mod attributes;
pub(crate) mod existing;
mod netlink;

use std::{
    collections::BTreeMap,
    io::{Error, Result},
    rc::Rc,
};

use tbv_common::{CqKey, QpKey};

use crate::driver;
use attributes::*;
use netlink::{Command, Source};

/// An object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object<T> {
    /// How to ask for it alone.
    listed: Listed,
    /// Name of the device.
    device: Rc<str>,
    /// Thread that created it, or opened the device for it, in our pid namespace; `None` if it has ended.
    thread: Option<u32>,
    what: T,
}

/// Where the kernel lists an object, in numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    device: u32,
    id: u32,
}

/// What is known of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CqState {
    entries: u32,
    mapped: bool,
    produced: u64,
    consumed: u64,
}

/// All that exist at one moment. Of many, one that exists may be missing: a list that takes several messages leaves
/// one out if another goes meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    cqs: BTreeMap<CqKey, Object<CqState>>,
    qps: BTreeMap<QpKey, Object<()>>,
}

/// A device of our own driver.
struct Device {
    listed: u32,
    number: u32,
    name: Rc<str>,
}

impl Inventory {
    /// Asks for it; for queue pairs only if `qps` says so.
    pub(crate) fn ask(source: &mut impl Source, qps: bool) -> Result<Self> {
        let mut inventory = Inventory::default();
        for message in source.all(Command::Devices, &[])? {
            if let Some(device) = our_device(Attributes(&message))? {
                inventory.add_cqs(&device, source)?;
                if qps {
                    inventory.add_qps(&device, source)?;
                }
            }
        }
        Ok(inventory)
    }

    fn add_cqs(&mut self, device: &Device, source: &mut impl Source) -> Result<()> {
        let mut contexts = None;
        for message in source.all(Command::Cqs, &[(DEV_INDEX, device.listed)])? {
            for entry in Attributes(&message).entries(RES_CQ, RES_CQ_ENTRY)? {
                let Some((cqn, mut cq)) = cq(entry, device)? else { continue };
                if cq.thread.is_none()
                    && let Some(context) = entry.u32(RES_CTXN)?
                {
                    let contexts = match &mut contexts {
                        Some(contexts) => contexts,
                        None => contexts.insert(threads_of_contexts(device, source)?),
                    };
                    cq.thread = contexts.get(&context).copied();
                }
                self.cqs.insert(CqKey { device: device.number, cqn }, cq);
            }
        }
        Ok(())
    }

    fn add_qps(&mut self, device: &Device, source: &mut impl Source) -> Result<()> {
        for message in source.all(Command::Qps, &[(DEV_INDEX, device.listed)])? {
            for entry in Attributes(&message).entries(RES_QP, RES_QP_ENTRY)? {
                if entry.has(RES_KERN_NAME)? {
                    continue;
                }
                let qpn = needed(entry.u32(RES_LQPN)?, "number of a queue pair")?;
                self.qps.insert(QpKey { device: device.number, qpn }, device.object(entry, qpn, ())?);
            }
        }
        Ok(())
    }
}

impl Device {
    fn object<T>(&self, entry: Attributes<'_>, id: u32, what: T) -> Result<Object<T>> {
        let listed = Listed { device: self.listed, id };
        Ok(Object { listed, device: Rc::clone(&self.name), thread: entry.u32(RES_PID)?, what })
    }
}

fn our_device(message: Attributes<'_>) -> Result<Option<Device>> {
    let guid = needed(message.u64(NODE_GUID)?, "GUID of a device")?;
    // As sysfs has it.
    let groups = [guid >> 48, guid >> 32, guid >> 16, guid].map(|group| format!("{:04x}", group & 0xffff));
    let Some(number) = driver::device_index(&groups.join(":")) else { return Ok(None) };
    Ok(Some(Device {
        listed: needed(message.u32(DEV_INDEX)?, "index of a device")?,
        number,
        name: needed(message.text(DEV_NAME)?, "name of a device")?.into(),
    }))
}

/// The driver's number of a completion queue and the rest; `None` if it is the kernel's own.
fn cq(entry: Attributes<'_>, device: &Device) -> Result<Option<(u32, Object<CqState>)>> {
    if entry.has(RES_KERN_NAME)? {
        return Ok(None);
    }
    let of_driver = entry.of_driver()?;
    let number = |name| of_driver.get(name).copied();
    let ours = (
        number("cqn").and_then(|n| u32::try_from(n).ok()),
        number("mapped"),
        number("produced"),
        number("consumed"),
    );
    let (Some(cqn), Some(mapped), Some(produced), Some(consumed)) = ours else {
        return Err(Error::other(
            "the loaded driver does not tell enough of a completion queue: it is older than this tbv-trace",
        ));
    };
    let entries = needed(entry.u32(RES_CQE)?, "capacity of a completion queue")?;
    let id = needed(entry.u32(RES_CQN)?, "number of a completion queue")?;
    let state = CqState { entries, mapped: mapped != 0, produced, consumed };
    Ok(Some((cqn, device.object(entry, id, state)?)))
}

/// Threads that opened the device and have not ended, by the number of what they have opened.
fn threads_of_contexts(device: &Device, source: &mut impl Source) -> Result<BTreeMap<u32, u32>> {
    let mut threads = BTreeMap::new();
    for message in source.all(Command::Contexts, &[(DEV_INDEX, device.listed)])? {
        for entry in Attributes(&message).entries(RES_CTX, RES_CTX_ENTRY)? {
            if let (Some(context), Some(thread)) = (entry.u32(RES_CTXN)?, entry.u32(RES_PID)?) {
                threads.insert(context, thread);
            }
        }
    }
    Ok(threads)
}

/// Whether an object that was listed is gone, or going. Asked for it alone the kernel is exact.
fn is_gone(source: &mut impl Source, command: Command, listed: Listed) -> bool {
    let device = (DEV_INDEX, listed.device);
    let answer = match command {
        // Any port will do: of a queue pair that exists the answer is another error at most.
        Command::Qps => source.one(command, &[device, (RES_LQPN, listed.id), (PORT_INDEX, 1)]),
        _ => source.one(command, &[device, (RES_CQN, listed.id)]),
    };
    answer.is_err_and(|error| error.raw_os_error() == Some(libc::ENOENT))
}

#[cfg(test)]
mod tests;
