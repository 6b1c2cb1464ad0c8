//! More completions than the queue holds.

use super::lane::good;
use super::{Lane, must};
use crate::pair::Ports;
use crate::verbs::{Cq, Error};

/// Completions beyond the capacity.
const BEYOND: u64 = 3;

/// Overflows a queue twice. Each time a loop that polls until something happens must come to an end, with the
/// completions first and one error then; and between and after that the queue must work.
pub fn overflow(ports: &Ports, cqe: u32) -> Result<String, Error> {
    let queue = Cq::new(&ports.contexts[0], cqe as i32)?;
    let capacity = queue.capacity() as u64;
    let depth = (capacity + BEYOND) as u32;
    let receive_cq = Cq::new(&ports.contexts[1], depth as i32)?;
    let mut lane = Lane::new(ports, depth, &queue, &receive_cq)?;
    let mut errors = 0;
    for round in 0..2 {
        let first = lane.sent;
        for _ in 0..capacity + BEYOND {
            lane.send()?;
        }
        lane.receive_all()?;
        // The last acknowledgement may still be on its way.
        std::thread::sleep(std::time::Duration::from_millis(200));
        // Room for more than there are: the loss must not make the poll forget what it has taken.
        let mut ids = Vec::new();
        while (ids.len() as u64) < capacity {
            let got = queue.poll(16)?;
            must(!got.is_empty(), || format!("round {round}: {} of {capacity} came", ids.len()))?;
            got.iter().try_for_each(good)?;
            ids.extend(got.iter().map(|completion| completion.wr_id));
        }
        must(ids.iter().copied().eq(first..first + capacity), || format!("round {round}: {ids:?}"))?;
        // By system call it is told to who finds nothing twice.
        let told = queue.poll(16).is_err() || queue.poll(16).is_err();
        must(told, || format!("round {round}: the loss is not told"))?;
        errors += 1;
        must(queue.poll(1)?.is_empty(), || format!("round {round}: a completion too many"))?;
        // It works on.
        for _ in 0..10 {
            lane.send()?;
            lane.receive_all()?;
            let mut patience = super::Patience::new();
            let completion = loop {
                match queue.poll(1)?.pop() {
                    Some(completion) => break completion,
                    None => patience.after(false, "a completion after an overflow")?,
                }
            };
            good(&completion)?;
            must(completion.wr_id == lane.sent - 1, || "an old completion came".to_owned())?;
        }
    }
    Ok(format!("errors={errors} capacity={capacity}"))
}
