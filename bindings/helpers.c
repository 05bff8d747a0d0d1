// SPDX-License-Identifier: GPL-2.0
/* See helpers.h. */

#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/neighbour.h>
#include <net/netevent.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "helpers.h"

unsigned int irdma_helper_num_online_cpus(void)
{
	return num_online_cpus();
}

void irdma_helper_irq_update_affinity_hint(unsigned int irq, unsigned int cpu)
{
	irq_update_affinity_hint(irq, cpu < nr_cpu_ids ? cpumask_of(cpu) : NULL);
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

static struct net_device *real_netdev(struct net_device *netdev)
{
	return rdma_vlan_dev_real_dev(netdev) ?: netdev;
}

/* Local addresses come and go with these events only. */
static bool address_event(unsigned long event, struct irdma_helper_address_event *out)
{
	ether_addr_copy(out->mac, out->netdev->dev_addr);
	out->gone = event == NETDEV_DOWN;
	return event == NETDEV_DOWN || event == NETDEV_UP || event == NETDEV_CHANGEADDR;
}

bool irdma_helper_inetaddr_event(unsigned long event, void *data,
				 struct irdma_helper_address_event *out)
{
	const struct in_ifaddr *address = data;

	out->netdev = real_netdev(address->ifa_dev->dev);
	if (out->netdev->addr_len != ETH_ALEN)
		return false;
	ipv6_addr_set_v4mapped(address->ifa_address, (struct in6_addr *)out->ip);
	return address_event(event, out);
}

bool irdma_helper_inet6addr_event(unsigned long event, void *data,
				  struct irdma_helper_address_event *out)
{
	const struct inet6_ifaddr *address = data;

	out->netdev = real_netdev(address->idev->dev);
	if (out->netdev->addr_len != ETH_ALEN)
		return false;
	memcpy(out->ip, &address->addr, sizeof(out->ip));
	return address_event(event, out);
}

bool irdma_helper_netevent(unsigned long event, void *data,
			   struct irdma_helper_address_event *out)
{
	struct neighbour *neigh = data;

	/* Other events come with other data. */
	if (event != NETEVENT_NEIGH_UPDATE || neigh->dev->addr_len != ETH_ALEN)
		return false;

	out->netdev = real_netdev(neigh->dev);
	switch (neigh->tbl->family) {
	case AF_INET:
		ipv6_addr_set_v4mapped(*(__be32 *)neigh->primary_key, (struct in6_addr *)out->ip);
		break;
	case AF_INET6:
		memcpy(out->ip, neigh->primary_key, sizeof(out->ip));
		break;
	default:
		return false;
	}
	neigh_ha_snapshot(out->mac, neigh, neigh->dev);
	out->gone = !(READ_ONCE(neigh->nud_state) & NUD_VALID);
	return true;
}

void irdma_helper_walk_addresses(struct net_device *netdev, irdma_helper_tell_t tell,
				 void *context)
{
	struct irdma_helper_address_event address = { .netdev = netdev };
	struct inet6_ifaddr *inet6addr;
	struct inet6_dev *inet6dev;
	struct in_ifaddr *inetaddr;
	struct in_device *inetdev;
	struct net_device *dev;

	rcu_read_lock();
	for_each_netdev_rcu(dev_net(netdev), dev) {
		if (real_netdev(dev) != netdev || dev->addr_len != ETH_ALEN ||
		    !(READ_ONCE(dev->flags) & IFF_UP))
			continue;

		ether_addr_copy(address.mac, dev->dev_addr);
		inetdev = __in_dev_get_rcu(dev);
		if (inetdev)
			in_dev_for_each_ifa_rcu(inetaddr, inetdev) {
				ipv6_addr_set_v4mapped(inetaddr->ifa_address,
						       (struct in6_addr *)address.ip);
				tell(context, &address);
			}
		inet6dev = __in6_dev_get(dev);
		if (inet6dev)
			list_for_each_entry_rcu(inet6addr, &inet6dev->addr_list, if_list) {
				memcpy(address.ip, &inet6addr->addr, sizeof(address.ip));
				tell(context, &address);
			}
	}
	rcu_read_unlock();
}

static bool in_mcast_group(struct net_device *dev, const struct in6_addr *group)
{
	struct inet6_dev *inet6dev;
	struct in_device *inetdev;
	struct ifmcaddr6 *mc6;
	struct ip_mc_list *mc;

	if (ipv6_addr_v4mapped(group)) {
		inetdev = __in_dev_get_rcu(dev);
		mc = inetdev ? rcu_dereference(inetdev->mc_list) : NULL;
		while (mc && mc->multiaddr != group->s6_addr32[3])
			mc = rcu_dereference(mc->next_rcu);
		return mc;
	}

	inet6dev = __in6_dev_get(dev);
	mc6 = inet6dev ? rcu_dereference(inet6dev->mc_list) : NULL;
	while (mc6 && !ipv6_addr_equal(&mc6->mca_addr, group))
		mc6 = rcu_dereference(mc6->next);
	return mc6;
}

int irdma_helper_next_mcast_vlan(struct net_device *netdev, const u8 *group, int after)
{
	struct net_device *dev;
	int next = -1, vlan;

	rcu_read_lock();
	for_each_netdev_rcu(dev_net(netdev), dev) {
		if (real_netdev(dev) != netdev)
			continue;

		vlan = is_vlan_dev(dev) ? vlan_dev_vlan_id(dev) : VLAN_N_VID;
		if (vlan > after && (next < 0 || vlan < next) &&
		    in_mcast_group(dev, (const struct in6_addr *)group))
			next = vlan;
	}
	rcu_read_unlock();
	return next;
}

int irdma_helper_register_inetaddr(struct notifier_block *nb)
{
	return register_inetaddr_notifier(nb);
}

int irdma_helper_unregister_inetaddr(struct notifier_block *nb)
{
	return unregister_inetaddr_notifier(nb);
}

int irdma_helper_register_inet6addr(struct notifier_block *nb)
{
	return register_inet6addr_notifier(nb);
}

int irdma_helper_unregister_inet6addr(struct notifier_block *nb)
{
	return unregister_inet6addr_notifier(nb);
}

int irdma_helper_register_netevent(struct notifier_block *nb)
{
	return register_netevent_notifier(nb);
}

int irdma_helper_unregister_netevent(struct notifier_block *nb)
{
	return unregister_netevent_notifier(nb);
}

u8 irdma_helper_egress_priority(const struct ib_gid_attr *attr, u8 priority)
{
	struct net_device *netdev;

	rcu_read_lock();
	netdev = rcu_dereference(attr->ndev);
	if (netdev && is_vlan_dev(netdev))
		priority = (vlan_dev_get_egress_qos_mask(netdev, priority) & VLAN_PRIO_MASK) >>
			   VLAN_PRIO_SHIFT;
	rcu_read_unlock();
	return priority;
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
