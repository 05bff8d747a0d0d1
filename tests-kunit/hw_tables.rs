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
        ids::{
            IdPools,
            Ids, //
        }, //
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

    // A page of them and some more: in turn from the last one on, around, and no further than their
    // number.
    #[test]
    fn numbers_in_turn() -> Result {
        const MAX: u32 = 32768 + 100;

        let ids = KBox::pin_init(Ids::new(MAX, 3), GFP_KERNEL)?;

        assert_eq!(ids.usable(), MAX - 3);
        for expected in 3..MAX {
            assert_eq!(ids.take()?.keep(), expected);
        }
        assert_eq!(ids.used(), MAX - 3);
        assert!(ids.take().is_err());

        for (back, expected) in [
            (&[5][..], &[5][..]),
            (&[3, 7, 32800], &[7, 32800, 3]),
            (&[MAX - 1, 4], &[4, MAX - 1]),
            (&[3], &[3]),
        ] {
            for id in back {
                ids.give_back(*id);
            }
            for id in expected {
                assert_eq!(ids.take()?.keep(), *id);
            }
            assert!(ids.take().is_err());
        }

        // Not kept, it is given back; one that can't be is left alone.
        ids.give_back(9);
        assert_eq!(ids.take()?.get(), 9);
        ids.give_back(MAX);
        assert_eq!(ids.used(), MAX - 4);
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
