// SPDX-License-Identifier: GPL-2.0
/* Tracepoint bodies, and the ABI number for tools of another age. */
#include <linux/module.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

static const unsigned int tbv_trace_abi = TBV_TRACE_ABI;
module_param_named(trace_abi, tbv_trace_abi, uint, 0444);
MODULE_PARM_DESC(trace_abi, "version of the tracepoints' arguments (read only)");
