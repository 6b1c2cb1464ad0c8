//! Queue pairs of a reliable connection.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::rc::Rc;

use tbv_verbs_sys as sys;

use super::{Address, Addressing, Cq, Error, Pd, Receive, Refused, Send};

/// Capacities to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub send_requests: u32,
    pub receive_requests: u32,
    pub send_sges: u32,
    pub receive_sges: u32,
}

/// How patient a connection is; in the units of the verbs, see ibv_modify_qp(3).
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Acknowledgement timeout, 4.096 µs × 2^timeout.
    pub timeout: u8,
    pub retry_count: u8,
    /// Retries when the receiver isn't ready; 7 is for ever.
    pub rnr_retry: u8,
    /// Code of the delay that the receiver asks for; 1 is 0.01 ms, 12 is 0.64 ms.
    pub min_rnr_timer: u8,
    /// First packet sequence number of what this side sends.
    pub send_psn: u32,
    /// First packet sequence number of what the peer sends.
    pub receive_psn: u32,
}

impl Default for Connection {
    fn default() -> Self {
        Self { timeout: 14, retry_count: 7, rnr_retry: 7, min_rnr_timer: 12, send_psn: 0, receive_psn: 0 }
    }
}

/// A queue pair.
pub struct Qp {
    raw: *mut sys::ibv_qp,
    limits: Limits,
    _pd: Rc<Pd>,
    send_cq: Rc<Cq>,
    receive_cq: Rc<Cq>,
}

impl Qp {
    pub fn new(pd: &Rc<Pd>, send_cq: &Rc<Cq>, receive_cq: &Rc<Cq>, limits: Limits) -> Result<Self, Error> {
        let mut attributes = sys::ibv_qp_init_attr {
            qp_context: null_mut(),
            send_cq: send_cq.raw,
            recv_cq: receive_cq.raw,
            srq: null_mut(),
            cap: sys::ibv_qp_cap {
                max_send_wr: limits.send_requests,
                max_recv_wr: limits.receive_requests,
                max_send_sge: limits.send_sges,
                max_recv_sge: limits.receive_sges,
                max_inline_data: 0,
            },
            qp_type: sys::IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: live objects.
        let raw = unsafe { sys::ibv_create_qp(pd.raw, &raw mut attributes) };
        if raw.is_null() {
            return Err(Error::last("ibv_create_qp"));
        }
        let limits = Limits {
            send_requests: attributes.cap.max_send_wr,
            receive_requests: attributes.cap.max_recv_wr,
            send_sges: attributes.cap.max_send_sge,
            receive_sges: attributes.cap.max_recv_sge,
        };
        let (send_cq, receive_cq) = (Rc::clone(send_cq), Rc::clone(receive_cq));
        Ok(Self { raw, limits, _pd: Rc::clone(pd), send_cq, receive_cq })
    }

    pub fn number(&self) -> u32 {
        // SAFETY: a live QP.
        unsafe { (*self.raw).qp_num }
    }

    /// Capacities as granted, which may be more than asked for.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn send_cq(&self) -> &Rc<Cq> {
        &self.send_cq
    }

    pub fn receive_cq(&self) -> &Rc<Cq> {
        &self.receive_cq
    }

    pub fn to_init(&self, port: u8) -> Result<(), Error> {
        let attributes =
            sys::ibv_qp_attr { qp_state: sys::IBV_QPS_INIT, port_num: port, ..Default::default() };
        let mask = sys::IBV_QP_PKEY_INDEX | sys::IBV_QP_PORT | sys::IBV_QP_ACCESS_FLAGS;
        self.modify(attributes, sys::IBV_QP_STATE | mask)
    }

    /// Ready to receive from this peer.
    pub fn to_rtr(&self, own: &Address, peer: &Address, peer_qp: u32, how: &Connection) -> Result<(), Error> {
        let mut ah_attr =
            sys::ibv_ah_attr { dlid: peer.lid, port_num: own.port, is_global: 0, ..Default::default() };
        if let Addressing::Gid(index) = own.addressing {
            ah_attr.is_global = 1;
            ah_attr.grh.dgid = sys::gid_words(peer.gid);
            ah_attr.grh.sgid_index = index;
            ah_attr.grh.hop_limit = 64;
        }
        let attributes = sys::ibv_qp_attr {
            qp_state: sys::IBV_QPS_RTR,
            path_mtu: own.mtu.min(peer.mtu),
            dest_qp_num: peer_qp,
            rq_psn: how.receive_psn,
            max_dest_rd_atomic: 1,
            min_rnr_timer: how.min_rnr_timer,
            ah_attr,
            ..Default::default()
        };
        let mask = sys::IBV_QP_AV | sys::IBV_QP_PATH_MTU | sys::IBV_QP_DEST_QPN | sys::IBV_QP_RQ_PSN;
        let mask = mask | sys::IBV_QP_MAX_DEST_RD_ATOMIC | sys::IBV_QP_MIN_RNR_TIMER;
        self.modify(attributes, sys::IBV_QP_STATE | mask)
    }

    /// Ready to send.
    pub fn to_rts(&self, how: &Connection) -> Result<(), Error> {
        let attributes = sys::ibv_qp_attr {
            qp_state: sys::IBV_QPS_RTS,
            sq_psn: how.send_psn,
            timeout: how.timeout,
            retry_cnt: how.retry_count,
            rnr_retry: how.rnr_retry,
            max_rd_atomic: 1,
            ..Default::default()
        };
        let mask = sys::IBV_QP_SQ_PSN | sys::IBV_QP_TIMEOUT | sys::IBV_QP_RETRY_CNT | sys::IBV_QP_RNR_RETRY;
        self.modify(attributes, sys::IBV_QP_STATE | mask | sys::IBV_QP_MAX_QP_RD_ATOMIC)
    }

    /// Goes to a state that needs no other attribute.
    pub fn to_state(&self, state: u32) -> Result<(), Error> {
        self.modify(sys::ibv_qp_attr { qp_state: state, ..Default::default() }, sys::IBV_QP_STATE)
    }

    fn modify(&self, mut attributes: sys::ibv_qp_attr, mask: u32) -> Result<(), Error> {
        // SAFETY: a live QP.
        let errno = unsafe { sys::ibv_modify_qp(self.raw, &raw mut attributes, mask as c_int) };
        Error::check("ibv_modify_qp", errno)
    }

    /// The state that the kernel has it in.
    pub fn state(&self) -> Result<u32, Error> {
        let mut attributes = sys::ibv_qp_attr::default();
        // SAFETY: numbers and nullable pointers.
        let mut init: sys::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        // SAFETY: a live QP.
        let errno = unsafe {
            sys::ibv_query_qp(self.raw, &raw mut attributes, sys::IBV_QP_STATE as c_int, &raw mut init)
        };
        Error::check("ibv_query_qp", errno)?;
        Ok(attributes.qp_state)
    }

    /// Posts a list of sends.
    pub fn post_send(&self, sends: &mut [Send]) -> Result<(), Refused> {
        let mut list: Vec<sys::ibv_send_wr> = sends.iter_mut().map(Send::request).collect();
        for i in 1..list.len() {
            list[i - 1].next = &raw mut list[i];
        }
        let mut bad = null_mut();
        // SAFETY: a live QP, and a list whose memory outlives the call.
        let errno = unsafe { sys::ibv_post_send(self.raw, list.as_mut_ptr(), &raw mut bad) };
        refused(errno, || list.iter().position(|request| std::ptr::eq(request, bad)))
    }

    /// Posts a list of receives.
    pub fn post_receive(&self, receives: &mut [Receive]) -> Result<(), Refused> {
        let mut list: Vec<sys::ibv_recv_wr> = receives.iter_mut().map(Receive::request).collect();
        for i in 1..list.len() {
            list[i - 1].next = &raw mut list[i];
        }
        let mut bad = null_mut();
        // SAFETY: a live QP, and a list whose memory outlives the call.
        let errno = unsafe { sys::ibv_post_recv(self.raw, list.as_mut_ptr(), &raw mut bad) };
        refused(errno, || list.iter().position(|request| std::ptr::eq(request, bad)))
    }
}

fn refused(errno: i32, index: impl FnOnce() -> Option<usize>) -> Result<(), Refused> {
    if errno == 0 { Ok(()) } else { Err(Refused { errno, index: index() }) }
}

impl Drop for Qp {
    fn drop(&mut self) {
        // SAFETY: a live QP.
        unsafe { sys::ibv_destroy_qp(self.raw) };
    }
}
