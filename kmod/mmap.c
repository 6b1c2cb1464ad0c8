// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the driver that a process maps. A mapping holds the pages, so that
 * it outlives the entry, the device and the module.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "mmap.h"

static struct tbv_mmap_entry *to_entry(struct rdma_user_mmap_entry *base)
{
	return container_of(base, struct tbv_mmap_entry, base);
}

/* Zeroed memory of @bytes, rounded up to pages; NULL if there is none. */
struct tbv_mmap_entry *tbv_mmap_create(struct ib_ucontext *ucontext,
				       size_t bytes, bool writable)
{
	struct tbv_mmap_entry *entry;

	bytes = PAGE_ALIGN(bytes);
	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return NULL;
	entry->writable = writable;
	entry->memory = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!entry->memory)
		goto err_entry;
	if (rdma_user_mmap_entry_insert(ucontext, &entry->base, bytes))
		goto err_memory;
	return entry;

err_memory:
	vfree(entry->memory);
err_entry:
	kfree(entry);
	return NULL;
}

/* Nobody can map it any more; it is freed when nobody is about to. */
void tbv_mmap_remove(struct tbv_mmap_entry *entry)
{
	if (entry)
		rdma_user_mmap_entry_remove(&entry->base);
}

void tbv_mmap_free(struct rdma_user_mmap_entry *base)
{
	struct tbv_mmap_entry *entry = to_entry(base);

	vfree(entry->memory);
	kfree(entry);
}

static int insert_pages(struct vm_area_struct *vma, void *memory)
{
	unsigned long at;
	int err;

	for (at = vma->vm_start; at != vma->vm_end; at += PAGE_SIZE) {
		err = vm_insert_page(vma, at, vmalloc_to_page(memory));
		if (err)
			return err;
		memory += PAGE_SIZE;
	}
	return 0;
}

int tbv_mmap(struct ib_ucontext *ucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *base;
	struct tbv_mmap_entry *entry;
	int err;

	/* Finds an entry only at its exact offset and length, to be shared. */
	base = rdma_user_mmap_entry_get(ucontext, vma);
	if (!base)
		return -EINVAL;
	entry = to_entry(base);

	if (vma->vm_flags & VM_EXEC ||
	    (vma->vm_flags & VM_WRITE && !entry->writable)) {
		err = -EPERM;
	} else {
		/* For good: mprotect() cannot add what is not allowed. */
		vm_flags_clear(vma, VM_MAYEXEC |
			       (entry->writable ? 0 : VM_MAYWRITE));
		/* A forked child has no business with its parent's queues. */
		vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
		err = insert_pages(vma, entry->memory);
	}
	rdma_user_mmap_entry_put(base);
	return err;
}
