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

	tbv_debugfs_init();
	err = tbv_cables_create(loop);
	if (err)
		goto err_debugfs;
	return 0;

err_debugfs:
	tbv_debugfs_exit();
	destroy_workqueue(tbv_bh_wq);
	return err;
}

static void __exit tbv_exit(void)
{
	tbv_cables_destroy();
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
