/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions for what C has as static inlines and macros. What they do is
 * documented with the originals, which are named like them.
 */
#ifndef IRDMA_RS_HELPERS_H
#define IRDMA_RS_HELPERS_H

#include <linux/types.h>

struct device;
struct ib_gid_attr;
struct ib_ucontext;
struct ib_udata;
struct net_device;
struct notifier_block;
struct rdma_user_mmap_entry;
struct uverbs_attr_bundle;
struct vm_area_struct;

/* linux/cpumask.h */
unsigned int irdma_helper_num_online_cpus(void);

/* linux/interrupt.h: for one CPU; for none if there is no such CPU. */
void irdma_helper_irq_update_affinity_hint(unsigned int irq, unsigned int cpu);

/* linux/dma-mapping.h */
void irdma_helper_dma_set_max_seg_size(struct device *dev, unsigned int size);

/* linux/netdevice.h */
void irdma_helper_dev_hold(struct net_device *netdev);
void irdma_helper_dev_put(struct net_device *netdev);
unsigned int irdma_helper_netdev_mtu(const struct net_device *netdev);
void irdma_helper_netdev_mac(const struct net_device *netdev, u8 *mac);
bool irdma_helper_netif_running(const struct net_device *netdev);
bool irdma_helper_netif_carrier_ok(const struct net_device *netdev);

/*
 * linux/inetdevice.h, net/addrconf.h and net/netevent.h: what a notification
 * says about an IP address. The parsers return whether it says anything.
 */
struct irdma_helper_address_event {
	struct net_device *netdev;	/* the real one below a VLAN */
	u8 ip[16];			/* IPv4 mapped to IPv6 */
	u8 mac[6];
	bool gone;
};

bool irdma_helper_inetaddr_event(unsigned long event, void *data,
				 struct irdma_helper_address_event *out);
bool irdma_helper_inet6addr_event(unsigned long event, void *data,
				  struct irdma_helper_address_event *out);
bool irdma_helper_netevent(unsigned long event, void *data,
			   struct irdma_helper_address_event *out);

/* Tells, in an RCU reader, all addresses of a network device that is up and of VLANs on it. */
typedef void (*irdma_helper_tell_t)(void *context,
				    const struct irdma_helper_address_event *address);
void irdma_helper_walk_addresses(struct net_device *netdev, irdma_helper_tell_t tell,
				 void *context);

/*
 * linux/igmp.h and net/if_inet6.h: the VLAN with the least id above "after" among
 * those of a network device that take part in an IP multicast group (IPv4 mapped to
 * IPv6). The device itself stands behind them as VLAN_N_VID; -1 if there is no more.
 */
int irdma_helper_next_mcast_vlan(struct net_device *netdev, const u8 *group, int after);

int irdma_helper_register_inetaddr(struct notifier_block *nb);
int irdma_helper_unregister_inetaddr(struct notifier_block *nb);
int irdma_helper_register_inet6addr(struct notifier_block *nb);
int irdma_helper_unregister_inet6addr(struct notifier_block *nb);
int irdma_helper_register_netevent(struct notifier_block *nb);
int irdma_helper_unregister_netevent(struct notifier_block *nb);

/* linux/if_vlan.h: the priority that a VLAN's egress map makes of a packet's. */
u8 irdma_helper_egress_priority(const struct ib_gid_attr *attr, u8 priority);

/* rdma/uverbs_ioctl.h; both give NULL for NULL. */
struct ib_udata *irdma_helper_bundle_udata(struct uverbs_attr_bundle *bundle);
struct ib_ucontext *irdma_helper_udata_ucontext(struct ib_udata *udata);

/* rdma/ib_verbs.h, with the caching that pgprot_*() makes. */
int irdma_helper_user_mmap_io(struct ib_ucontext *context, struct vm_area_struct *vma,
			      unsigned long pfn, unsigned long size, bool write_combining,
			      struct rdma_user_mmap_entry *entry);

#endif
