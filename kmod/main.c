// SPDX-License-Identifier: GPL-2.0
/* Module: parameters, load and unload. */
#include <linux/module.h>

#include "cable.h"
#include "tbv.h"

static unsigned int loop;
module_param(loop, uint, 0444);
MODULE_PARM_DESC(loop, "virtual cables to make, two devices each (0)");

struct workqueue_struct *tbv_bh_wq;

static int __init tbv_init(void)
{
	int err;

	if (loop > TBV_MAX_CABLES)
		return -EINVAL;

	tbv_bh_wq = alloc_workqueue("tbv", WQ_BH, 0);
	if (!tbv_bh_wq)
		return -ENOMEM;

	err = tbv_cables_init(loop, tbv_debugfs_init());
	if (err) {
		tbv_debugfs_exit();
		destroy_workqueue(tbv_bh_wq);
	}
	return err;
}

static void __exit tbv_exit(void)
{
	tbv_cables_exit();
	tbv_debugfs_exit();
	destroy_workqueue(tbv_bh_wq);
	/* Memory regions are freed after an RCU grace period. */
	rcu_barrier();
}

module_init(tbv_init);
module_exit(tbv_exit);

MODULE_DESCRIPTION("RDMA verbs over USB4 and Thunderbolt");
MODULE_AUTHOR("The tbv developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
