//! Messages that are under way together in one direction.

use tbv_verbs_sys as sys;

use super::{Layout, Message};
use crate::random::Random;
use crate::verbs::{Completion, Cq, Error, Mr, Qp, Receive, Send, status_name};

/// Highest offset at which the first message of a burst may start.
pub(super) const MAX_START: usize = 4200;

/// A message in memory, with what both windows must look like afterwards.
struct Placed {
    id: u64,
    message: Message,
    data: Vec<u8>,
    source: Layout,
    source_image: Vec<u8>,
    target: Layout,
    target_image: Vec<u8>,
}

/// Messages from one side to the other.
pub(super) struct Burst<'a> {
    from: (&'a Qp, &'a Mr),
    to: (&'a Qp, &'a Mr),
    placed: Vec<Placed>,
}

impl<'a> Burst<'a> {
    /// Writes the messages to the sender's memory, and noise to the receiver's and around both. Each id is distinct.
    pub(super) fn place(
        random: &mut Random,
        from: (&'a Qp, &'a Mr),
        to: (&'a Qp, &'a Mr),
        messages: Vec<Message>,
    ) -> Result<Self, Error> {
        // Any offset is as good as another: let alignment be chance.
        let mut source_end = random.within(0..=MAX_START);
        let mut target_end = random.within(0..=MAX_START);
        let mut placed = Vec::new();
        for message in messages {
            let mut data = vec![0; message.bytes];
            random.fill(&mut data);
            let source = Layout::random(random, source_end, message.bytes, message.send_pieces);
            let room = message.bytes + message.spare;
            let target = Layout::random(random, target_end, room, message.receive_pieces);
            let mut source_image = vec![0; source.window.len()];
            let mut target_image = vec![0; target.window.len()];
            random.fill(&mut source_image);
            random.fill(&mut target_image);
            source.scatter(&data, &mut source_image);
            from.1.region().write(source.window.start, &source_image)?;
            to.1.region().write(target.window.start, &target_image)?;
            target.scatter(&data, &mut target_image);
            (source_end, target_end) = (source.window.end, target.window.end);
            placed.push(Placed {
                id: random.word(),
                message,
                data,
                source,
                source_image,
                target,
                target_image,
            });
        }
        Ok(Self { from, to, placed })
    }

    pub(super) fn post_receives(&self, as_list: bool) -> Result<(), Error> {
        let sges = |layout: &Layout| layout.pieces.iter().map(|p| self.to.1.sge(p.clone())).collect();
        let mut receives: Vec<Receive> =
            self.placed.iter().map(|p| Receive::new(p.id, sges(&p.target))).collect();
        let size = if as_list { receives.len().max(1) } else { 1 };
        for part in receives.chunks_mut(size) {
            let verb = "ibv_post_recv";
            self.to.0.post_receive(part).map_err(|refused| Error::Verb { verb, errno: refused.errno })?;
        }
        Ok(())
    }

    pub(super) fn post_sends(&self, as_list: bool) -> Result<(), Error> {
        let sges = |layout: &Layout| layout.pieces.iter().map(|p| self.from.1.sge(p.clone())).collect();
        let send = |p: &Placed| Send {
            id: p.id,
            sges: if p.message.bytes == 0 { Vec::new() } else { sges(&p.source) },
            immediate: p.message.immediate,
            signaled: p.message.signaled,
        };
        let mut sends: Vec<Send> = self.placed.iter().map(send).collect();
        let size = if as_list { sends.len().max(1) } else { 1 };
        for part in sends.chunks_mut(size) {
            let verb = "ibv_post_send";
            self.from.0.post_send(part).map_err(|refused| Error::Verb { verb, errno: refused.errno })?;
        }
        Ok(())
    }

    /// How many completions are due: of sends, of receives.
    pub(super) fn due(&self) -> [usize; 2] {
        [self.placed.iter().filter(|p| p.message.signaled).count(), self.placed.len()]
    }

    /// The queues on which they are due.
    pub(super) fn queues(&self) -> [&'a Cq; 2] {
        [self.from.0.send_cq(), self.to.0.receive_cq()]
    }

    /// Checks the n-th send completion.
    pub(super) fn check_send(&self, n: usize, got: &Completion) -> Result<(), Error> {
        let Some(placed) = self.placed.iter().filter(|p| p.message.signaled).nth(n) else {
            return Err(Error::Wrong(format!("a send completion too many: {got:?}")));
        };
        check_status("send", got)?;
        check("wr_id of a send", placed.id, got.wr_id)?;
        check("opcode of a send", sys::IBV_WC_SEND, got.opcode)?;
        check("qp_num of a send", self.from.0.number(), got.qp_num)
    }

    /// Checks the n-th receive completion.
    pub(super) fn check_receive(&self, n: usize, got: &Completion) -> Result<(), Error> {
        let Some(placed) = self.placed.get(n) else {
            return Err(Error::Wrong(format!("a receive completion too many: {got:?}")));
        };
        check_status("receive", got)?;
        check("wr_id of a receive", placed.id, got.wr_id)?;
        check("opcode of a receive", sys::IBV_WC_RECV, got.opcode)?;
        check("qp_num of a receive", self.to.0.number(), got.qp_num)?;
        check("byte_len of a receive", placed.data.len() as u64, u64::from(got.byte_len))?;
        let immediate = (got.wc_flags & sys::IBV_WC_WITH_IMM != 0).then(|| u32::from_be(got.imm_data));
        check("immediate data", placed.message.immediate, immediate)
    }

    /// Compares both sides' memory; returns the bytes moved.
    pub(super) fn check_memory(&self) -> Result<u64, Error> {
        for placed in &self.placed {
            let length = placed.data.len();
            let source = self.from.1.region().read(placed.source.window.clone())?;
            let target = self.to.1.region().read(placed.target.window.clone())?;
            compare("sender's memory", &placed.source, &placed.source_image, &source, length)?;
            compare("receiver's memory", &placed.target, &placed.target_image, &target, length)?;
        }
        Ok(self.placed.iter().map(|p| p.data.len() as u64).sum())
    }
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, got: T) -> Result<(), Error> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Wrong(format!("{what}: expected {expected:x?}, got {got:x?}")))
}

fn check_status(what: &str, got: &Completion) -> Result<(), Error> {
    if got.status == sys::IBV_WC_SUCCESS {
        return Ok(());
    }
    let (status, vendor) = (status_name(got.status), got.vendor_err);
    Err(Error::Wrong(format!("a {what} completed with {status} (vendor error {vendor:#x})")))
}

fn compare(what: &str, layout: &Layout, expected: &[u8], got: &[u8], length: usize) -> Result<(), Error> {
    let Some(at) = expected.iter().zip(got).position(|(a, b)| a != b) else { return Ok(()) };
    let differing = expected.iter().zip(got).filter(|(a, b)| a != b).count();
    let (byte, wanted, found) = (layout.describe(layout.window.start + at, length), expected[at], got[at]);
    Err(Error::Wrong(format!(
        "{what}: {byte} is {found:#04x}, expected {wanted:#04x} ({differing} bytes differ, layout {:?})",
        layout.pieces
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_byte_is_found_and_named() {
        let layout = Layout { window: 10..20, pieces: vec![11..13, 15..18] };
        let expected = *b".ab..cde..";
        assert_eq!(compare("memory", &layout, &expected, &expected, 5), Ok(()));
        for at in 0..expected.len() {
            let mut got = expected;
            got[at] ^= 1;
            let error = compare("memory", &layout, &expected, &got, 5).unwrap_err().to_string();
            assert!(
                error.contains(&layout.describe(10 + at, 5)) && error.contains("1 bytes differ"),
                "{error}"
            );
        }
    }

    #[test]
    fn fields_and_status_are_judged() {
        assert_eq!(check("qp_num", 1, 1), Ok(()));
        assert!(check("qp_num", 1, 0x1f).is_err_and(|e| e.to_string() == "qp_num: expected 1, got 1f"));
        let failed = Completion { status: sys::IBV_WC_RETRY_EXC_ERR, ..Completion::default() };
        assert!(check_status("send", &failed).is_err_and(|e| e.to_string().contains("RETRY_EXC_ERR")));
        assert_eq!(check_status("send", &Completion::default()), Ok(()));
    }
}
