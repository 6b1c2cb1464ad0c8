/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of the driver that a process maps. */
#ifndef TBV_MMAP_H
#define TBV_MMAP_H

#include <rdma/ib_verbs.h>

/**
 * struct tbv_mmap_entry - memory that a process may map
 * @base: what the RDMA core finds it by
 * @memory: whole pages, by vmalloc
 * @writable: by the process
 */
struct tbv_mmap_entry {
	struct rdma_user_mmap_entry base;
	void *memory;
	bool writable;
};

struct tbv_mmap_entry *tbv_mmap_create(struct ib_ucontext *ucontext,
				       size_t bytes, bool writable);
void tbv_mmap_remove(struct tbv_mmap_entry *entry);
void tbv_mmap_free(struct rdma_user_mmap_entry *base);
int tbv_mmap(struct ib_ucontext *ucontext, struct vm_area_struct *vma);

#endif /* TBV_MMAP_H */
