// SPDX-License-Identifier: GPL-2.0
/* Tracepoint bodies, and the ABI number for tools of another age. */
#include <linux/module.h>
#include <linux/sysfs.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

static int get_abi(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%u\n", TBV_TRACE_ABI);
}

static int set_abi(const char *value, const struct kernel_param *param)
{
	return -EPERM;
}

static const struct kernel_param_ops abi_ops = {
	.get = get_abi,
	.set = set_abi,
};
module_param_cb(trace_abi, &abi_ops, NULL, 0444);
MODULE_PARM_DESC(trace_abi, "version of the tracepoints' arguments, read only");
