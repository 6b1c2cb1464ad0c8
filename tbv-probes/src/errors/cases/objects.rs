//! Objects that can't be made, or not yet be destroyed.

use std::rc::Rc;

use libc::{EBUSY, EFAULT, EINVAL, ENOMEM};
use tbv_verbs_sys as sys;

use super::{Case, Stage, Step};
use crate::errors::outcome::Outcome;
use crate::verbs::{Cq, Error, Limits, Mr, Pd, Qp, Region};

pub(super) const CASES: &[Case] = &[
    Case { name: "pd-busy", about: "freeing a protection domain that has memory", play: pd_busy },
    Case { name: "cq-busy", about: "destroying a completion queue that a queue pair uses", play: cq_busy },
    Case { name: "mr-unmapped", about: "registering memory that isn't there", play: mr_unmapped },
    Case { name: "mr-not-writable", about: "registering read-only pages for writing", play: mr_not_writable },
    Case {
        name: "mr-wrong-access",
        about: "registering for remote but not for local writing",
        play: mr_wrong_access,
    },
    Case { name: "beyond-limits", about: "queues larger than the device allows", play: beyond_limits },
];

fn pd_busy(stage: &Stage) -> Result<Vec<Step>, Error> {
    let pd = Pd::new(&stage.ports.contexts[0])?;
    let _mr = Mr::new(&pd, &Region::new(4096)?, 0)?;
    let errno = Rc::clone(&pd).try_free_in_use();
    Ok(vec![Step::new("freeing it", Outcome::Errno(errno), Outcome::Errno(EBUSY))])
}

fn cq_busy(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [player, _] = stage.unconnected()?;
    let errno = Rc::clone(player.qp().send_cq()).try_destroy_in_use();
    Ok(vec![Step::new("destroying it", Outcome::Errno(errno), Outcome::Errno(EBUSY))])
}

fn mr_unmapped(stage: &Stage) -> Result<Vec<Step>, Error> {
    let pd = Pd::new(&stage.ports.contexts[0])?;
    let region = Region::new(4096)?;
    // The region ends at a page that nobody may touch.
    let beyond = Outcome::verb(Mr::part(&pd, &region, 0..region.size() + 1, sys::IBV_ACCESS_LOCAL_WRITE))?;
    let fits = Outcome::verb(Mr::part(&pd, &region, 0..region.size(), sys::IBV_ACCESS_LOCAL_WRITE))?;
    Ok(vec![
        Step::new("one byte too many", beyond, Outcome::Errno(EFAULT)),
        Step::new("all that is there", fits, Outcome::Errno(0)),
    ])
}

fn mr_not_writable(stage: &Stage) -> Result<Vec<Step>, Error> {
    let pd = Pd::new(&stage.ports.contexts[0])?;
    let region = Region::new(4096)?;
    region.write(0, b"x")?;
    region.protect(libc::PROT_READ)?;
    let written = Outcome::verb(Mr::new(&pd, &region, sys::IBV_ACCESS_LOCAL_WRITE))?;
    Ok(vec![Step::new("for writing", written, Outcome::Errno(EFAULT))])
}

fn mr_wrong_access(stage: &Stage) -> Result<Vec<Step>, Error> {
    let pd = Pd::new(&stage.ports.contexts[0])?;
    let region = Region::new(4096)?;
    let remote_only = Outcome::verb(Mr::new(&pd, &region, sys::IBV_ACCESS_REMOTE_WRITE))?;
    Ok(vec![Step::new("remote without local writing", remote_only, Outcome::Errno(EINVAL))])
}

fn beyond_limits(stage: &Stage) -> Result<Vec<Step>, Error> {
    let context = &stage.ports.contexts[0];
    let device = context.attributes()?;
    let entries = Outcome::verb(Cq::new(context, device.max_cqe.saturating_add(1)))?;
    let none = Outcome::verb(Cq::new(context, 0))?;
    let pd = Pd::new(context)?;
    let cq = Cq::new(context, 16)?;
    let usual = Limits { send_requests: 1, receive_requests: 1, send_sges: 1, receive_sges: 1 };
    let make = |limits| Outcome::verb(Qp::new(&pd, &cq, &cq, limits));
    let (requests, sges) = (device.max_qp_wr as u32 + 1, device.max_sge as u32 + 1);
    Ok(vec![
        Step::new("completions", entries, Outcome::Errno(EINVAL)),
        Step::new("no completions", none, Outcome::Errno(EINVAL)),
        Step::new("sends", make(Limits { send_requests: requests, ..usual })?, Outcome::Errno(EINVAL))
            .or_errno(ENOMEM),
        Step::new("receives", make(Limits { receive_requests: requests, ..usual })?, Outcome::Errno(EINVAL))
            .or_errno(ENOMEM),
        Step::new("pieces", make(Limits { send_sges: sges, ..usual })?, Outcome::Errno(EINVAL))
            .or_errno(ENOMEM),
        Step::new("within", make(usual)?, Outcome::Errno(0)),
    ])
}
