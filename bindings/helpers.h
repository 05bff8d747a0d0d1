/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions for what C has as static inlines and macros, in the order of the
 * headers that they come from. Their documentation is that of the original.
 */
#ifndef IRDMA_RS_HELPERS_H
#define IRDMA_RS_HELPERS_H

#include <linux/types.h>

struct net_device;

int irdma_helper_netdev_mtu(const struct net_device *netdev);

#endif
