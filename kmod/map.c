// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mapping of a page set. Once, as a whole, shared, and never inherited: a
 * child that could write to it would have its parent make calls for it.
 * VM_IO keeps madvise(MADV_DOFORK) from undoing that.
 */
#include "ctx.h"
#include "ring.h"

static void map_open(struct vm_area_struct *vma)
{
	struct fxk_ctx *ctx = vma->vm_private_data;

	WRITE_ONCE(ctx->nr_mappings, ctx->nr_mappings + 1);
}

static void map_close(struct vm_area_struct *vma)
{
	struct fxk_ctx *ctx = vma->vm_private_data;

	WRITE_ONCE(ctx->nr_mappings, ctx->nr_mappings - 1);
	if (!ctx->nr_mappings)
		fxk_ctx_die(ctx);
}

static vm_fault_t map_fault(struct vm_fault *vmf)
{
	struct fxk_ctx *ctx = vmf->vma->vm_private_data;
	unsigned long at;

	if (vmf->pgoff >= ctx->nr_pages || vmf->vma->vm_mm != ctx->mm)
		return VM_FAULT_SIGBUS;
	at = fxk_page_get(ctx, vmf->pgoff, GFP_KERNEL_ACCOUNT);
	if (!at)
		return VM_FAULT_OOM;
	vmf->page = virt_to_page((void *)at);
	get_page(vmf->page);
	return 0;
}

static int map_split(struct vm_area_struct *vma, unsigned long at)
{
	return -EINVAL;
}

static int map_move(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static const struct vm_operations_struct map_ops = {
	.open = map_open,
	.close = map_close,
	.may_split = map_split,
	.mremap = map_move,
	.fault = map_fault,
};

int fxk_map(struct file *file, struct vm_area_struct *vma)
{
	struct fxk_ctx *ctx = smp_load_acquire(&file->private_data);
	unsigned long size = vma->vm_end - vma->vm_start;

	if (!ctx)
		return -ENXIO;
	if (current->mm != ctx->mm || vma->vm_mm != ctx->mm)
		return -EPERM;
	if (vma->vm_pgoff || size != (u64)ctx->nr_pages * PAGE_SIZE ||
	    !(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	/* Under the lock of its mm, as everything about mappings. */
	if (ctx->mapped)
		return -EBUSY;
	ctx->mapped = true;
	ctx->nr_mappings = 1;
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP | VM_IO);
	vma->vm_private_data = ctx;
	vma->vm_ops = &map_ops;
	return 0;
}
