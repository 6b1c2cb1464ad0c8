//! A device that goes while receives are posted.

use std::io::Write as _;

use tbv_verbs_sys::IBV_WC_WR_FLUSH_ERR;

use super::{Lane, Patience, must};
use crate::pair::Ports;
use crate::verbs::{Cq, Error};

/// Posts receives that nobody sends to, says so, and waits for the device to go. Each must be flushed, in order, and
/// then polling must fail.
pub fn gone(ports: &Ports, receives: u32) -> Result<String, Error> {
    let send_cq = Cq::new(&ports.contexts[0], 1)?;
    let queue = Cq::new(&ports.contexts[1], receives as i32)?;
    let lane = Lane::new(ports, receives, &send_cq, &queue)?;
    for id in 0..u64::from(receives) {
        lane.post_receive(id)?;
    }
    announce();
    let mut patience = Patience::new();
    let mut flushed = 0;
    loop {
        match queue.poll(3) {
            Ok(got) if got.is_empty() => patience.after(false, "the end of the device")?,
            Ok(got) => {
                for completion in got {
                    must(completion.status == IBV_WC_WR_FLUSH_ERR && completion.wr_id == flushed, || {
                        format!("{flushed}: {} with status {}", completion.wr_id, completion.status)
                    })?;
                    flushed += 1;
                }
            }
            Err(_) => break,
        }
    }
    must(flushed == u64::from(receives), || format!("{flushed} of {receives} were flushed"))?;
    Ok(format!("flushed={flushed}"))
}

/// Says that what others wait for has come.
pub(crate) fn announce() {
    println!("running");
    // A closed standard output is nobody waiting.
    let _ = std::io::stdout().flush();
}
