// SPDX-License-Identifier: GPL-2.0
/* See helpers.h. */

#include <linux/netdevice.h>

#include "helpers.h"

int irdma_helper_netdev_mtu(const struct net_device *netdev)
{
	return READ_ONCE(netdev->mtu);
}
