use layout_check::Check;
use proptest::prelude::*;

use super::*;

/// An attribute, padded as in a message.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [&(value.len() as u16 + 4).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

fn table(table: u16, entry: u16, entries: &[Vec<u8>]) -> Vec<u8> {
    attribute(table, &entries.iter().map(|one| attribute(entry, one)).collect::<Vec<_>>().concat())
}

const NESTED: u16 = 1 << 15;

/// As the kernel module tells it.
fn of_driver(cqn: u32, mapped: u32, produced: u64) -> Vec<u8> {
    let long =
        |name, value: u64| [text(DRIVER_STRING, name), attribute(DRIVER_U64, &value.to_ne_bytes())].concat();
    let short = |name, value| [text(DRIVER_STRING, name), number(DRIVER_U32, value)].concat();
    let all = [
        short("cqn", cqn),
        short("mapped", mapped),
        long("produced", produced),
        long("consumed", produced / 2),
    ];
    attribute(DRIVER | NESTED, &all.concat())
}

fn cq_entry(id: u32, pid: Option<u32>, driver: &[u8]) -> Vec<u8> {
    let pid = pid.map_or_else(Vec::new, |pid| number(RES_PID, pid));
    [number(RES_CQE, 100 + id), number(RES_CQN, id), number(RES_CTXN, 50 + id), pid, driver.to_vec()].concat()
}

fn qp_entry(qpn: u32, pid: u32) -> Vec<u8> {
    [number(RES_LQPN, qpn), number(RES_PID, pid)].concat()
}

fn device(index: u32, name: &str, guid: u64) -> Vec<u8> {
    [number(DEV_INDEX, index), text(DEV_NAME, name), attribute(NODE_GUID, &guid.to_ne_bytes())].concat()
}

/// Answers by command and device.
#[derive(Default)]
struct Answers(BTreeMap<(u16, u32), Vec<Vec<u8>>>);

impl Answers {
    fn with(mut self, command: Command, device: u32, messages: &[Vec<u8>]) -> Self {
        self.0.insert((command as u16, device), messages.to_vec());
        self
    }
}

impl Source for Answers {
    fn all(&mut self, command: Command, arguments: &[(u16, u32)]) -> Result<Vec<Vec<u8>>> {
        let device = arguments.first().map_or(0, |(_, device)| *device);
        Ok(self.0.get(&(command as u16, device)).cloned().unwrap_or_default())
    }

    fn one(&mut self, command: Command, arguments: &[(u16, u32)]) -> Result<Vec<u8>> {
        match *arguments {
            [_, (RES_CQN, 1)] if command == Command::Cqs => Ok(Vec::new()),
            [_, (RES_LQPN, 17), (PORT_INDEX, 1)] if command == Command::Qps => {
                Err(Error::from_raw_os_error(libc::EAGAIN))
            }
            _ => Err(Error::from_raw_os_error(libc::ENOENT)),
        }
    }
}

fn answers() -> Answers {
    let devices = [device(0, "mlx5_0", 0x5054_00ff_fe12_3456), device(3, "renamed", 0x0200_5442_1234_5601)];
    let cqs = [cq_entry(1, Some(77), &of_driver(5, 1, 1 << 40)), cq_entry(2, None, &of_driver(6, 0, 0))];
    let kernels = [text(RES_KERN_NAME, "ib_core"), number(RES_LQPN, 1)].concat();
    let context = |number_: u32, pid: u32| [number(RES_CTXN, number_), number(RES_PID, pid)].concat();
    Answers::default()
        .with(Command::Devices, 0, &devices)
        .with(
            Command::Cqs,
            3,
            &[
                [number(DEV_INDEX, 3), table(RES_CQ, RES_CQ_ENTRY, &cqs[..1])].concat(),
                [number(DEV_INDEX, 3), table(RES_CQ, RES_CQ_ENTRY, &cqs[1..])].concat(),
            ],
        )
        .with(Command::Qps, 3, &[table(RES_QP, RES_QP_ENTRY, &[qp_entry(17, 77), kernels])])
        .with(Command::Contexts, 3, &[table(RES_CTX, RES_CTX_ENTRY, &[context(51, 1), context(52, 88)])])
}

#[test]
fn queues_of_our_own_devices_have_their_owners() {
    let found = Inventory::ask(&mut answers(), true).unwrap();
    let object = |id, thread, entries, mapped, produced: u64| Object {
        listed: Listed { device: 3, id },
        device: "renamed".into(),
        thread: Some(thread),
        what: CqState { entries, mapped, produced, consumed: produced / 2 },
    };
    let key = |cqn| CqKey { device: 1, cqn };
    let expected = [(key(5), object(1, 77, 101, true, 1 << 40)), (key(6), object(2, 88, 102, false, 0))];
    assert_eq!(found.cqs, BTreeMap::from(expected));
    let qps: Vec<_> = found.qps.iter().map(|(key, qp)| (key.device, key.qpn, qp.thread)).collect();
    assert_eq!(qps, [(1, 17, Some(77))]);
}

#[test]
fn one_whose_opener_has_ended_too_has_no_owner() {
    let found = Inventory::ask(&mut answers().with(Command::Contexts, 3, &[]), true).unwrap();
    assert_eq!(found.cqs.values().map(|cq| cq.thread).collect::<Vec<_>>(), [Some(77), None]);
}

#[test]
fn queue_pairs_are_asked_for_only_if_they_matter() {
    let found = Inventory::ask(&mut answers().with(Command::Qps, 3, &[vec![1]]), false).unwrap();
    assert!(found.qps.is_empty() && found.cqs.len() == 2);
}

#[test]
fn nothing_is_an_answer_too() {
    let found = Inventory::ask(&mut Answers::default(), true).unwrap();
    assert!(found.cqs.is_empty() && found.qps.is_empty());
}

#[test]
fn an_older_driver_is_said_to_be() {
    let driver = attribute(DRIVER, &[text(DRIVER_STRING, "cqn"), number(DRIVER_U32, 5)].concat());
    let cqs = table(RES_CQ, RES_CQ_ENTRY, &[cq_entry(1, Some(77), &driver)]);
    let error = Inventory::ask(&mut answers().with(Command::Cqs, 3, &[cqs]), true).unwrap_err();
    assert!(error.to_string().contains("older than this tbv-trace"), "{error}");
}

#[test]
fn only_what_does_not_exist_is_gone() {
    let mut source = answers();
    let mut gone = |command, id| is_gone(&mut source, command, Listed { device: 3, id });
    assert!(!gone(Command::Cqs, 1) && gone(Command::Cqs, 2));
    assert!(!gone(Command::Qps, 17) && gone(Command::Qps, 18));
}

#[test]
fn odd_attributes_are_refused() {
    for odd in [
        attribute(RES_CQE, &[1, 2, 3]),
        attribute(RES_CQE, &[0; 8]),
        attribute(DRIVER, &number(DRIVER_U32, 1)),
        attribute(DRIVER, &attribute(DRIVER_STRING, b"no end")),
        attribute(DRIVER, &attribute(DRIVER_STRING, &[0xff, 0])),
        attribute(DRIVER, &[9, 0, 0, 0, 1]),
        vec![3, 0, 1, 0],
        vec![8, 0, 1, 0, 1],
        vec![1],
    ] {
        let odd = [odd, cq_entry(1, None, &of_driver(5, 1, 1))].concat();
        let cqs = table(RES_CQ, RES_CQ_ENTRY, std::slice::from_ref(&odd));
        let error = Inventory::ask(&mut answers().with(Command::Cqs, 3, &[cqs]), true).map(|found| found.cqs);
        assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::InvalidData, "{odd:?}");
    }
}

#[test]
fn numbers_are_those_of_the_header() {
    let attributes = [
        ("DEV_INDEX", DEV_INDEX),
        ("DEV_NAME", DEV_NAME),
        ("PORT_INDEX", PORT_INDEX),
        ("NODE_GUID", NODE_GUID),
        ("RES_QP", RES_QP),
        ("RES_QP_ENTRY", RES_QP_ENTRY),
        ("RES_LQPN", RES_LQPN),
        ("RES_PID", RES_PID),
        ("RES_KERN_NAME", RES_KERN_NAME),
        ("RES_CQ", RES_CQ),
        ("RES_CQ_ENTRY", RES_CQ_ENTRY),
        ("RES_CQE", RES_CQE),
        ("DRIVER", DRIVER),
        ("DRIVER_STRING", DRIVER_STRING),
        ("DRIVER_U32", DRIVER_U32),
        ("DRIVER_U64", DRIVER_U64),
        ("RES_CQN", RES_CQN),
        ("RES_CTXN", RES_CTXN),
        ("RES_CTX", RES_CTX),
        ("RES_CTX_ENTRY", RES_CTX_ENTRY),
    ];
    let commands = [
        ("GET", Command::Devices),
        ("RES_QP_GET", Command::Qps),
        ("RES_CQ_GET", Command::Cqs),
        ("RES_CTX_GET", Command::Contexts),
    ];
    let check = Check::new("<rdma/rdma_netlink.h>");
    let check = attributes
        .into_iter()
        .fold(check, |check, (name, value)| check.number(&format!("RDMA_NLDEV_ATTR_{name}"), value));
    let check = commands.into_iter().fold(check, |check, (name, value)| {
        let message = format!("RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_{name})");
        check.number(&message, netlink::message_type(value))
    });
    check.run(&std::env::temp_dir().join(format!("tbv-netlink-{}", std::process::id()))).unwrap();
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for command in [Command::Devices, Command::Cqs, Command::Qps, Command::Contexts] {
            let device = if command == Command::Devices { 0 } else { 3 };
            let _ = Inventory::ask(&mut answers().with(command, device, std::slice::from_ref(&bytes)), true);
        }
    }

    #[test]
    fn any_damage_is_read_or_refused(at: prop::sample::Index, to: u8, cut: prop::sample::Index) {
        for ((command, device), mut messages) in answers().0 {
            let Some(message) = messages.first_mut() else { continue };
            let length = message.len();
            message[at.index(length)] = to;
            message.truncate(cut.index(length) + 1);
            let mut damaged = answers();
            damaged.0.insert((command, device), messages);
            let _ = Inventory::ask(&mut damaged, true);
        }
    }
}
