//! libibverbs' objects, owned: each keeps alive what it was made from, and is destroyed with its last user.

mod channel;
mod context;
mod cq;
mod error;
mod memory;
mod qp;
mod work;

pub use channel::{Channel, Waiter};
pub use context::{Address, Addressing, Context, Event, Pd};
pub use cq::{Cq, Extended, Idle, Poller};
pub use error::{Error, errno_name, status_name};
pub use memory::{Mr, Region};
pub use qp::{Connection, Limits, Qp};
pub use work::{Completion, Receive, Refused, Send, Sge};
