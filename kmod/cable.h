/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual cables: two devices of this kernel joined by loop rings. */
#ifndef TBV_CABLE_H
#define TBV_CABLE_H

#include <linux/types.h>

#define TBV_MAX_CABLES 8

struct dentry;
struct tbv_cable;

int tbv_cables_init(unsigned int count, struct dentry *debugfs);
void tbv_cables_exit(void);
bool tbv_cable_unplugged(const struct tbv_cable *cable);
void tbv_cable_unplug(struct tbv_cable *cable, bool unplug);

#endif /* TBV_CABLE_H */
