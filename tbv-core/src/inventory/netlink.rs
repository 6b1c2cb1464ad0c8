//! Questions to rdma netlink and its answers (`rdma/rdma_netlink.h`).

use std::{
    fmt::Display,
    io::{Error, ErrorKind, Result},
    os::fd::{AsRawFd as _, OwnedFd},
};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send, socket,
};

/// `RDMA_NL_NLDEV`: the client whose commands these are.
const NLDEV: u16 = 5;
/// The kernel puts at most half of it into one datagram.
const ROOM: usize = 1 << 16;

/// What can be asked for; `enum rdma_nldev_command`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Command {
    /// Devices.
    Devices = 1,
    /// Queue pairs of a device.
    Qps = 10,
    /// Completion queues of a device.
    Cqs = 12,
    /// Contexts of a device: one for each time that a process has opened it.
    Contexts = 22,
}

/// Attribute and value.
pub(crate) type Arguments<'a> = &'a [(u16, u32)];

/// Who answers: the kernel, or a test.
pub(crate) trait Source {
    /// Everything that there is: the attributes of each message.
    fn all(&mut self, command: Command, arguments: Arguments<'_>) -> Result<Vec<Vec<u8>>>;

    /// One object; an error that says `ENOENT` if there is none.
    fn one(&mut self, command: Command, arguments: Arguments<'_>) -> Result<Vec<u8>>;
}

/// A message that cannot be read.
pub(super) fn malformed(what: impl Display) -> Error {
    Error::new(ErrorKind::InvalidData, format!("an answer of rdma netlink that cannot be read: {what}"))
}

/// A socket that only the kernel answers on.
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> Result<Self> {
        // The kernel answers before send and recv return: waiting would be for ever.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRDMA)?;
        connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Asks, and reads datagrams until the answer is whole.
    fn ask(&mut self, command: Command, flags: u16, arguments: Arguments<'_>) -> Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let question = question(command, flags, self.sequence, arguments);
        send(self.socket.as_raw_fd(), &question, MsgFlags::empty())?;
        let mut answer =
            Answer { whole: flags & NLM_F_DUMP == 0, sequence: self.sequence, parts: Vec::new() };
        let mut room = vec![0; ROOM];
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut room, MsgFlags::MSG_TRUNC)?;
            let datagram = room.get(..length).ok_or_else(|| malformed("it is too long"))?;
            if answer.read(datagram)? {
                return Ok(answer.parts);
            }
        }
    }
}

impl Source for Netlink {
    fn all(&mut self, command: Command, arguments: Arguments<'_>) -> Result<Vec<Vec<u8>>> {
        self.ask(command, NLM_F_DUMP, arguments)
    }

    fn one(&mut self, command: Command, arguments: Arguments<'_>) -> Result<Vec<u8>> {
        self.ask(command, 0, arguments)?.pop().ok_or_else(|| malformed("it is empty"))
    }
}

/// As `RDMA_NL_GET_TYPE` has it.
pub(super) fn message_type(command: Command) -> u16 {
    NLDEV << 10 | command as u16
}

/// A message's attributes as they are.
struct Raw {
    kind: u16,
    bytes: Vec<u8>,
}

impl NetlinkDeserializable for Raw {
    type Error = std::convert::Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> std::result::Result<Self, Self::Error> {
        Ok(Raw { kind: header.message_type, bytes: payload.to_vec() })
    }
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.bytes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes);
    }
}

fn question(command: Command, flags: u16, sequence: u32, arguments: Arguments<'_>) -> Vec<u8> {
    let attribute = |&(kind, value): &(u16, u32)| {
        let length = size_of::<[u16; 2]>() + size_of::<u32>();
        [&(length as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), &value.to_ne_bytes()].concat()
    };
    let raw = Raw { kind: message_type(command), bytes: arguments.iter().flat_map(attribute).collect() };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(raw));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// An answer as far as it was read.
struct Answer {
    /// Whether one message is all; else a last one says so.
    whole: bool,
    sequence: u32,
    parts: Vec<Vec<u8>>,
}

impl Answer {
    /// Takes the messages of a datagram; whether no more are to come.
    fn read(&mut self, mut datagram: &[u8]) -> Result<bool> {
        while !datagram.is_empty() {
            let message = NetlinkMessage::<Raw>::deserialize(datagram).map_err(malformed)?;
            let length = (message.header.length as usize).next_multiple_of(size_of::<u32>());
            datagram = datagram.get(length..).unwrap_or_default();
            if message.header.sequence_number != self.sequence {
                return Err(malformed("it is to another question"));
            }
            match message.payload {
                NetlinkPayload::InnerMessage(raw) => {
                    self.parts.push(raw.bytes);
                    if self.whole {
                        return Ok(true);
                    }
                }
                NetlinkPayload::Done(done) if done.code < 0 => return Err(errno(done.code)),
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::Error(error) => {
                    return Err(error.code.map_or_else(|| malformed("no answer"), |code| errno(code.get())));
                }
                NetlinkPayload::Overrun(_) => return Err(malformed("parts of it were lost")),
                _ => {}
            }
        }
        Ok(false)
    }
}

fn errno(code: i32) -> Error {
    Error::from_raw_os_error(code.saturating_neg())
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{NLMSG_DONE, NLMSG_ERROR, NLMSG_OVERRUN};
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, sequence: u32, bytes: &[u8]) -> Vec<u8> {
        let mut message =
            [&[0; 4][..], &kind.to_ne_bytes(), &[0; 2], &sequence.to_ne_bytes(), &[0; 4], bytes].concat();
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message.resize(message.len().next_multiple_of(4), 0);
        message
    }

    fn dump() -> Answer {
        Answer { whole: false, sequence: 7, parts: Vec::new() }
    }

    #[test]
    fn a_question_is_as_the_kernel_wants_it() {
        let expected = message(5 << 10 | 12, 7, &[8, 0, 1, 0, 0x78, 0x56, 0x34, 0x12]);
        let mut sent = question(Command::Cqs, NLM_F_DUMP, 7, &[(1, 0x1234_5678)]);
        assert_eq!(u16::from_ne_bytes([sent[6], sent[7]]), NLM_F_DUMP | NLM_F_REQUEST);
        sent[6..8].fill(0);
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_dump_ends_with_its_last_message() {
        let mut answer = dump();
        assert!(!answer.read(&[message(5133, 7, b"one"), message(5133, 7, b"two!")].concat()).unwrap());
        assert!(
            answer.read(&[message(5133, 7, b"three"), message(NLMSG_DONE, 7, &[0; 4])].concat()).unwrap()
        );
        assert_eq!(answer.parts, [&b"one"[..], b"two!", b"three"]);
    }

    #[test]
    fn one_answer_is_whole_by_itself() {
        let mut answer = Answer { whole: true, ..dump() };
        assert!(answer.read(&message(5133, 7, b"one")).unwrap());
    }

    #[test]
    fn refusals_have_their_errno() {
        let code = (-libc::ENOENT).to_ne_bytes();
        for kind in [NLMSG_DONE, NLMSG_ERROR] {
            let error = dump().read(&message(kind, 7, &[&code[..], &[0; 16]].concat())).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{error}");
        }
        let least = i32::MIN.to_ne_bytes();
        assert!(dump().read(&message(NLMSG_ERROR, 7, &[&least[..], &[0; 16]].concat())).is_err());
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let good = message(5133, 7, b"four");
        for length in 1..good.len() {
            assert_eq!(dump().read(&good[..length]).unwrap_err().kind(), ErrorKind::InvalidData, "{length}");
        }
        assert!(dump().read(&message(5133, 8, b"")).is_err());
        assert!(dump().read(&message(NLMSG_OVERRUN, 7, b"")).is_err());
        assert!(dump().read(&message(NLMSG_ERROR, 7, &[0; 20])).is_err(), "an acknowledgement is no answer");
    }

    proptest! {
        #[test]
        fn any_datagram_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = dump().read(&bytes);
        }

        #[test]
        fn any_damage_is_read_or_refused(at in 0..100usize, to: u8, cut in 0..100usize) {
            let done = message(NLMSG_DONE, 7, &[0; 4]);
            let mut bytes = [message(5133, 7, &[1; 30]), message(5133, 7, &[2; 8]), done].concat();
            let length = bytes.len();
            bytes[at % length] = to;
            let _ = dump().read(&bytes[..length - cut % length]);
        }
    }
}
