// SPDX-License-Identifier: GPL-2.0
/* See helpers.h. */

#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "helpers.h"

unsigned int irdma_helper_num_online_cpus(void)
{
	return num_online_cpus();
}

void irdma_helper_dma_set_max_seg_size(struct device *dev, unsigned int size)
{
	dma_set_max_seg_size(dev, size);
}

void irdma_helper_dev_hold(struct net_device *netdev)
{
	dev_hold(netdev);
}

void irdma_helper_dev_put(struct net_device *netdev)
{
	dev_put(netdev);
}

unsigned int irdma_helper_netdev_mtu(const struct net_device *netdev)
{
	return READ_ONCE(netdev->mtu);
}

void irdma_helper_netdev_mac(const struct net_device *netdev, u8 *mac)
{
	ether_addr_copy(mac, netdev->dev_addr);
}

bool irdma_helper_netif_running(const struct net_device *netdev)
{
	return netif_running(netdev);
}

bool irdma_helper_netif_carrier_ok(const struct net_device *netdev)
{
	return netif_carrier_ok(netdev);
}

struct ib_udata *irdma_helper_bundle_udata(struct uverbs_attr_bundle *bundle)
{
	return bundle ? &bundle->driver_udata : NULL;
}

struct ib_ucontext *irdma_helper_udata_ucontext(struct ib_udata *udata)
{
	return udata ? rdma_udata_to_uverbs_attr_bundle(udata)->context : NULL;
}

int irdma_helper_user_mmap_io(struct ib_ucontext *context, struct vm_area_struct *vma,
			      unsigned long pfn, unsigned long size, bool write_combining,
			      struct rdma_user_mmap_entry *entry)
{
	pgprot_t prot = write_combining ? pgprot_writecombine(vma->vm_page_prot) :
					  pgprot_noncached(vma->vm_page_prot);

	return rdma_user_mmap_io(context, vma, pfn, size, prot, entry);
}
