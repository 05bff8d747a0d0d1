/* SPDX-License-Identifier: GPL-2.0 */
/* What bindgen reads, see Makefile.bindgen. */

#include <rdma/ib_verbs.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>
#include <rdma/iw_cm.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/net/intel/iidc_rdma.h>
#include <linux/net/intel/iidc_rdma_ice.h>

#include "helpers.h"
#include "irdma_rs_trace.h"
