//! What the tests share: two devices, players in a given state, and a trace that has just begun.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tbv_probes::errors::{Player, Stage};
use tbv_probes::pair::{Devices, Shape};
use tbv_probes::verbs::{Completion, Connection};
use tbv_verbs_sys as sys;
use vm_tests::driver_trace::Trace;
use vm_tests::usb4::{self, DEVICES};

/// The sender's device and the receiver's.
pub(crate) const FROM: &str = DEVICES[0];
pub(crate) const TO: &str = DEVICES[1];

/// Wire opcode of a SEND, and syndromes of replies (kmod/wire.h).
pub(crate) const WIRE_SEND: u64 = 1;
pub(crate) const ACK: u64 = 1;
pub(crate) const NAK_SEQUENCE: u64 = 2;
pub(crate) const RNR: u64 = 3;
pub(crate) const NAK_INVALID: u64 = 4;
pub(crate) const NAK_OPERATION: u64 = 5;

/// Payload of a full frame (kmod/wire.h).
pub(crate) const FRAME: usize = 4096 - 64;

/// Acknowledgement timeouts: 4.096 µs × 2^21 is 9 s, longer than a test lets anything wait; 0 is once a second, for
/// ever.
pub(crate) const PATIENT: Connection = Connection { timeout: 21, ..USUAL };
pub(crate) const ENDLESS: Connection = Connection { timeout: 0, ..USUAL };
const USUAL: Connection =
    Connection { timeout: 14, retry_count: 7, rnr_retry: 7, min_rnr_timer: 12, send_psn: 0, receive_psn: 0 };

pub(crate) fn stage() -> Result<Stage> {
    usb4::set_up()?;
    let [from, to] = [FROM, TO].map(|name| Some(name.to_owned()));
    let devices = Devices { device: from, peer: to, port: 1, gid_index: None };
    let ports = devices.open().context("IBV_DRIVERS names the provider when `cargo xtask vm` runs this")?;
    Ok(Stage { ports, patience: Duration::from_secs(240), quiet: Duration::from_millis(300) })
}

/// Two connected players, and a trace from now on. They have exchanged a message: with its answer the credits are back
/// that an earlier test's lost frames took.
pub(crate) fn connected(how: Connection) -> Result<([Player; 2], Trace)> {
    let [from, to] = stage()?.connected(Shape::default(), how)?;
    to.must_receive(to.receive(0, 1))?;
    from.must_send(from.send(0, 1))?;
    sent(&from, 0, sys::IBV_WC_SUCCESS)?;
    received(&to, 0, sys::IBV_WC_SUCCESS)?;
    Ok(([from, to], Trace::start()?))
}

/// Connects `own` from RESET or INIT to `peer`, up to `state`, with sequence numbers as in `how`.
pub(crate) fn connect(own: &Player, peer: &Player, how: &Connection, state: u32) -> Result<()> {
    let (own, peer) = (&own.endpoint, &peer.endpoint);
    if own.qp.state()? == sys::IBV_QPS_RESET && state >= sys::IBV_QPS_INIT {
        own.qp.to_init(own.address.port)?;
    }
    if state >= sys::IBV_QPS_RTR {
        own.qp.to_rtr(&own.address, &peer.address, peer.qp.number(), how)?;
    }
    if state >= sys::IBV_QPS_RTS {
        own.qp.to_rts(how)?;
    }
    Ok(())
}

/// The number of the player's queue pair, as events carry it.
pub(crate) fn qpn(player: &Player) -> u64 {
    player.qp().number().into()
}

/// The player's next completion must be of this request and have this status.
pub(crate) fn must_end(what: &str, completion: Option<Completion>, id: u64, status: u32) -> Result<()> {
    let Some(completion) = completion else { bail!("{what}: no completion") };
    ensure!(
        completion.wr_id == id && completion.status == status,
        "{what}: request {} ended with {}, expected {id} with {status}",
        completion.wr_id,
        completion.status
    );
    Ok(())
}

pub(crate) fn sent(player: &Player, id: u64, status: u32) -> Result<()> {
    must_end("send", player.sent()?, id, status)
}

pub(crate) fn received(player: &Player, id: u64, status: u32) -> Result<()> {
    must_end("receive", player.received()?, id, status)
}

/// Neither queue has a completion, nor gets one soon.
pub(crate) fn nothing_ended(player: &Player) -> Result<()> {
    let quiet = Duration::from_millis(300);
    for queue in [player.qp().send_cq(), player.qp().receive_cq()] {
        if let Some(completion) = queue.wait(quiet)? {
            bail!("request {} ended with {}", completion.wr_id, completion.status);
        }
    }
    Ok(())
}
