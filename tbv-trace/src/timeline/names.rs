//! What numbers of the driver's events are called.

use std::borrow::Cow;

use tbv_core::QP_DESTROYED;

/// `enum ib_wc_status` without prefix.
pub(crate) fn status(status: u32) -> Cow<'static, str> {
    const NAMES: [&str; 22] = [
        "SUCCESS",
        "LOC_LEN_ERR",
        "LOC_QP_OP_ERR",
        "LOC_EEC_OP_ERR",
        "LOC_PROT_ERR",
        "WR_FLUSH_ERR",
        "MW_BIND_ERR",
        "BAD_RESP_ERR",
        "LOC_ACCESS_ERR",
        "REM_INV_REQ_ERR",
        "REM_ACCESS_ERR",
        "REM_OP_ERR",
        "RETRY_EXC_ERR",
        "RNR_RETRY_EXC_ERR",
        "LOC_RDD_VIOL_ERR",
        "REM_INV_RD_REQ_ERR",
        "REM_ABORT_ERR",
        "INV_EECN_ERR",
        "INV_EEC_STATE_ERR",
        "FATAL_ERR",
        "RESP_TIMEOUT_ERR",
        "GENERAL_ERR",
    ];
    named(&NAMES, status)
}

/// `enum ib_qp_state` without prefix.
pub(crate) fn state(state: u32) -> Cow<'static, str> {
    if state == QP_DESTROYED {
        return "DESTROYED".into();
    }
    named(&["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"], state)
}

/// Why frames are sent again, in the words of the reports.
pub(crate) fn reason(reason: u32) -> Cow<'static, str> {
    named(&["timeout", "sequence_error", "rnr"], reason)
}

fn named(names: &[&'static str], number: u32) -> Cow<'static, str> {
    names.get(number as usize).map_or_else(|| number.to_string().into(), |name| (*name).into())
}
