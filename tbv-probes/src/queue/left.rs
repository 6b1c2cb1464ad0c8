//! A program that closes its device and leaves a queue behind.

use std::fs;

use super::access::mappings;
use super::must;
use crate::pair::Ports;
use crate::verbs::{Context, Cq, Error};

/// Closing must unmap the queue: a mapping keeps the file open, and with it all that the kernel holds for it.
pub fn left(ports: Ports) -> Result<String, Error> {
    let context = Context::open(Some(ports.contexts[0].name()))?;
    drop(ports);
    let queue = Cq::new(&context, 64)?;
    let mapped = mappings()?.len();
    // Closed without its queue's destruction, as by a program that forgets it.
    context.close_and_forget(queue)?;
    must(mappings()?.is_empty(), || "mappings are left".to_owned())?;
    let files = fs::read_dir("/proc/self/fd").map_err(|e| Error::Unusable(format!("/proc/self/fd: {e}")))?;
    let names = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let open = names.filter(|name| name.starts_with("/dev/infiniband")).count();
    must(open == 0, || format!("{open} device files are open"))?;
    Ok(format!("mappings={mapped}"))
}
