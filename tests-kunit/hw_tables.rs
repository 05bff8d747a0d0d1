// SPDX-License-Identifier: GPL-2.0

//! How many objects the driver numbers, and how many neighbours it keeps.

use kernel::prelude::*;

#[kunit_tests(irdma_hw_tables)]
mod tests {
    use kernel::prelude::*;

    use crate::hw::{
        arp::ArpTable,
        hmc::{
            fpm::{
                Layout,
                Placement, //
            },
            object::Object, //
        },
        ids::IdPools, //
    };

    /// A layout of so many queue pairs and multicast groups.
    fn layout(qps: u32, groups: u32) -> Layout {
        let mut layout = Layout::default();

        for (object, count) in [(Object::Qp, qps), (Object::McastGroup, groups)] {
            let placement = Placement {
                count,
                ..Placement::default()
            };

            layout.objects.set(object, placement);
        }
        layout
    }

    // As many as the device has, as there are queue pairs and as a command can name: 4096. Group 0 is
    // none.
    #[test]
    fn multicast_groups() -> Result {
        for (qps, groups, usable) in [
            (1024, 512, 511),
            (256, 512, 255),
            (16384, 8192, 4095),
            (1024, 0, 0),
        ] {
            let ids = KBox::pin_init(IdPools::new(&layout(qps, groups), 16), GFP_KERNEL)?;

            assert_eq!(ids.mcast_groups.usable(), usable);
            if usable == 0 {
                assert!(ids.mcast_groups.take().is_err());
            }
        }
        Ok(())
    }

    // An index has 16 bits, and 0 stays unused.
    #[test]
    fn neighbours() -> Result {
        for (size, usable) in [(1024, 1023), (1 << 16, 65_535), (100_000, 65_535)] {
            assert!(ArpTable::new(size)?.occupancy() == (0, usable));
        }
        Ok(())
    }
}
