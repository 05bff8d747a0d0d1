// SPDX-License-Identifier: GPL-2.0
/*
 * dmabuf_lender - lends memory as DMA buffers and takes it back, as graphics
 * drivers do. For tests only.
 *
 * Device /dev/dmabuf_lender: LEND makes a buffer of so many pages and returns
 * its file descriptor; TAKE_BACK takes the buffer of a file descriptor back
 * from those who use it. A buffer can be mapped.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#define LEND		_IO('L', 1)
#define TAKE_BACK	_IO('L', 2)
#define MOST_PAGES	1024

struct loan {
	unsigned int count;
	bool taken;
	struct page *pages[];
};

static void loan_free(struct loan *loan)
{
	unsigned int i;

	for (i = 0; i < loan->count; i++) {
		if (loan->pages[i])
			__free_page(loan->pages[i]);
	}
	kvfree(loan);
}

static struct loan *loan_alloc(unsigned int count)
{
	struct loan *loan = kvzalloc_flex(*loan, pages, count);
	unsigned int i;

	if (!loan)
		return NULL;
	loan->count = count;
	for (i = 0; i < count; i++) {
		loan->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!loan->pages[i]) {
			loan_free(loan);
			return NULL;
		}
	}
	return loan;
}

static struct sg_table *loan_map(struct dma_buf_attachment *attach,
				 enum dma_data_direction dir)
{
	struct loan *loan = attach->dmabuf->priv;
	struct sg_table *table;
	int err;

	if (loan->taken)
		return ERR_PTR(-ENODEV);
	table = kzalloc_obj(*table);
	if (!table)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(table, loan->pages, loan->count, 0,
					loan->count * PAGE_SIZE, GFP_KERNEL);
	if (err)
		goto free;
	err = dma_map_sgtable(attach->dev, table, dir, 0);
	if (!err)
		return table;
	sg_free_table(table);
free:
	kfree(table);
	return ERR_PTR(err);
}

static void loan_unmap(struct dma_buf_attachment *attach,
		       struct sg_table *table, enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, table, dir, 0);
	sg_free_table(table);
	kfree(table);
}

/* Memory that is lent does not move until it is taken back. */
static int loan_pin(struct dma_buf_attachment *attach)
{
	struct loan *loan = attach->dmabuf->priv;

	return loan->taken ? -ENODEV : 0;
}

static void loan_unpin(struct dma_buf_attachment *attach)
{
}

static int loan_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct loan *loan = buf->priv;

	return vm_map_pages(vma, loan->pages, loan->count);
}

static void loan_release(struct dma_buf *buf)
{
	loan_free(buf->priv);
}

static const struct dma_buf_ops loan_ops = {
	.map_dma_buf = loan_map,
	.unmap_dma_buf = loan_unmap,
	.pin = loan_pin,
	.unpin = loan_unpin,
	.mmap = loan_mmap,
	.release = loan_release,
};

static long lend(unsigned long count)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;
	struct loan *loan;
	int fd;

	if (!count || count > MOST_PAGES)
		return -EINVAL;
	loan = loan_alloc(count);
	if (!loan)
		return -ENOMEM;
	info.ops = &loan_ops;
	info.size = count * PAGE_SIZE;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = loan;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		loan_free(loan);
		return PTR_ERR(buf);
	}
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	return fd;
}

static long take_back(int fd)
{
	struct dma_buf *buf = dma_buf_get(fd);
	struct loan *loan;
	long err = -EINVAL;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	if (buf->ops == &loan_ops) {
		loan = buf->priv;
		dma_resv_lock(buf->resv, NULL);
		loan->taken = true;
		dma_buf_invalidate_mappings(buf);
		dma_resv_unlock(buf->resv);
		err = 0;
	}
	dma_buf_put(buf);
	return err;
}

static long lender_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case LEND:
		return lend(arg);
	case TAKE_BACK:
		return take_back(arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations lender_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = lender_ioctl,
};

static struct miscdevice lender = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "dmabuf_lender",
	.fops = &lender_fops,
};
module_misc_device(lender);

MODULE_DESCRIPTION("Lends DMA buffers and takes them back");
MODULE_IMPORT_NS("DMA_BUF");
MODULE_LICENSE("GPL");
