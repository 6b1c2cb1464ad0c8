//! Work requests and completions.

use tbv_verbs_sys as sys;

pub use sys::ibv_sge as Sge;
pub use sys::ibv_wc as Completion;

/// A SEND, with immediate data if there is some.
#[derive(Clone, Debug)]
pub struct Send {
    pub id: u64,
    pub sges: Vec<Sge>,
    pub immediate: Option<u32>,
    pub signaled: bool,
}

/// A receive.
#[derive(Clone, Debug)]
pub struct Receive {
    pub id: u64,
    pub sges: Vec<Sge>,
}

/// A list of requests was refused from one of them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub errno: i32,
    /// Which one, counted from 0; `None` if the library pointed elsewhere.
    pub index: Option<usize>,
}

impl Send {
    /// A signalled SEND.
    pub fn new(id: u64, sges: Vec<Sge>) -> Self {
        Self { id, sges, immediate: None, signaled: true }
    }

    pub(super) fn request(&mut self) -> sys::ibv_send_wr {
        let opcode = if self.immediate.is_some() { sys::IBV_WR_SEND_WITH_IMM } else { sys::IBV_WR_SEND };
        let mut request = sys::ibv_send_wr::new(self.id, opcode);
        request.sg_list = self.sges.as_mut_ptr();
        request.num_sge = self.sges.len() as i32;
        request.imm_data = self.immediate.unwrap_or(0).to_be();
        request.send_flags = if self.signaled { sys::IBV_SEND_SIGNALED } else { 0 };
        request
    }
}

impl Receive {
    pub fn new(id: u64, sges: Vec<Sge>) -> Self {
        Self { id, sges }
    }

    pub(super) fn request(&mut self) -> sys::ibv_recv_wr {
        sys::ibv_recv_wr {
            wr_id: self.id,
            next: std::ptr::null_mut(),
            sg_list: self.sges.as_mut_ptr(),
            num_sge: self.sges.len() as i32,
        }
    }
}
