// SPDX-License-Identifier: GPL-2.0

//! Commands of the control queue against vectors worked out by hand.
//!
//! Words 0 to 7 of an entry; word 3 is the header, whose bits are counted below in its upper half:
//! the operation in 0x0000_003f, then what each command says beside its vector. The valid bit at the
//! top is the ring's and zero here. Layouts: `IRDMA_CQPSQ_*` in the C driver's defs.h.

use kernel::prelude::*;

#[kunit_tests(irdma_hw_cqp)]
mod tests {
    use kernel::prelude::*;

    use crate::hw::cqp::{
        address::{
            AddArp,
            AddressHandle,
            CreateAh,
            CreateMcastGroup,
            DeleteArp,
            DestroyAh,
            IpAddress,
            McastGroup, //
        },
        command::Command,
        cq::{
            CreateCq,
            DestroyCq,
            RingBase, //
        },
        error::CommandError,
        event_queue::{
            CreateAeq,
            CreateCeq,
            DestroyAeq,
            DestroyCeq, //
        },
        memory::{
            CommitFpm,
            QueryFeatures,
            QueryFpm,
            SegmentKind,
            SegmentUpdate,
            ShmcPagesAllocated,
            UpdateSds, //
        },
        mr::{
            AccessRight,
            AccessRights,
            AllocStag,
            DeallocStag,
            PageSize,
            RegMr,
            RegionBase, //
        },
        qp::{
            CreateQp,
            DestroyQp,
            FlushCode,
            FlushCodes,
            FlushWqes,
            GeneratedEvent,
            ModifyQp,
            QpState,
            QpType,
            ResumeQp,
            SuspendQp, //
        },
        scheduler::{
            GatherStats,
            NodeAction,
            NodePriority,
            WorkSchedNode, //
        }, //
    };

    const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

    // Number 23:0. Virtual map 0x2000, CQ numbers valid 0x8000, type 3 in 0x0007_0000, MAC valid
    // 0x0008_0000, next state 1 in 0x7000_0000; operation 0.
    #[test]
    fn create_qp() {
        let create = CreateQp {
            qp_id: 0xab_cdef,
            kind: QpType::RoceRc,
            context: 0x1_0000_0100,
            shadow: 0x2_0000_0040,
            virtual_map: true,
            ord_valid: false,
            tcp_context_valid: false,
            mac_valid: true,
            cq_valid: true,
            arp_valid: false,
            force_loopback: false,
            next_state: QpState::Idle,
        };

        assert!(
            create.encode()
                == [
                    0,
                    0,
                    0x1_0000_0100,
                    0x100b_a000_00ab_cdef,
                    0,
                    0x2_0000_0040,
                    0,
                    0,
                ]
        );

        // Read depth valid 0x0400, TCP context 0x0800, loopback 0x4000, neighbour 0x0800_0000; type 4.
        let other = CreateQp {
            kind: QpType::RoceUd,
            virtual_map: false,
            ord_valid: true,
            tcp_context_valid: true,
            mac_valid: false,
            cq_valid: false,
            arp_valid: true,
            force_loopback: true,
            next_state: QpState::Error,
            ..create
        };
        assert_eq!(other.encode()[3], 0x6804_4c00_00ab_cdef);
    }

    // Cached variables 0x1000, CQ numbers 0x8000, type 4, new MSS 0x0010_0000 with its value in word
    // 1 45:32, neighbour 0x0800_0000, state 2; operation 1.
    #[test]
    fn modify_qp() {
        let modify = ModifyQp {
            qp_id: 5,
            kind: QpType::RoceUd,
            context: 0x3000,
            shadow: 0x4040,
            virtual_map: false,
            new_mss: Some(0x400),
            ord_valid: false,
            tcp_context_valid: false,
            cached_valid: true,
            cq_valid: true,
            mac_valid: false,
            arp_valid: true,
            force_loopback: false,
            remove_hash: false,
            reset_connection: false,
            terminate: None,
            next_state: QpState::Rts,
        };

        assert!(
            modify.encode()
                == [
                    0,
                    0x0000_0400_0000_0000,
                    0x3000,
                    0x2814_9001_0000_0005,
                    0,
                    0x4040,
                    0,
                    0,
                ]
        );
    }

    // Type 3, hash entry 0x0080_0000, bound windows 0x0040_0000; operation 2.
    #[test]
    fn destroy_qp() {
        let destroy = DestroyQp {
            qp_id: 6,
            kind: QpType::RoceRc,
            context: 0x3000,
            shadow: 0x4040,
            remove_hash: true,
            ignore_bound_windows: false,
        };

        assert!(destroy.encode() == [0, 0, 0x3000, 0x0083_0002_0000_0006, 0, 0x4040, 0, 0]);
        let destroy = DestroyQp {
            remove_hash: false,
            ignore_bound_windows: true,
            ..destroy
        };
        assert_eq!(destroy.encode()[3], 0x0043_0002_0000_0006);
    }

    // Send queue 0x2000_0000, receive queue 0x4000_0000, codes given 0x1000_0000, event 0x0800_0000;
    // operation 0x22. Word 2: send major, send minor, receive major, receive minor. Word 1: source
    // 19:16 above the event's code.
    #[test]
    fn flush() {
        let codes = FlushCodes {
            sq: FlushCode { major: 1, minor: 3 },
            rq: FlushCode { major: 1, minor: 2 },
        };
        let flush = FlushWqes {
            qp_id: 7,
            sq: true,
            rq: true,
            codes: Some(codes),
            event: None,
        };

        assert!(
            flush.encode()
                == [
                    0,
                    0,
                    0x0001_0003_0001_0002,
                    0x7000_0022_0000_0007,
                    0,
                    0,
                    0,
                    0,
                ]
        );

        let flush = FlushWqes {
            rq: false,
            event: Some(GeneratedEvent {
                code: 0x20d,
                source: 5,
            }),
            ..flush
        };
        assert!(
            flush.encode()
                == [
                    0,
                    0x5_020d,
                    0x0001_0003_0000_0000,
                    0x3800_0022_0000_0007,
                    0,
                    0,
                    0,
                    0,
                ]
        );
    }

    #[test]
    fn suspend_and_resume() {
        assert!(SuspendQp { qp_id: 9 }.encode() == [0, 0, 0, 0x29_0000_0009, 0, 0, 0, 0]);
        let resume = ResumeQp {
            qp_id: 9,
            qs_handle: 0x123,
        };
        assert!(resume.encode() == [0, 0, 0x123, 0x2a_0000_0009, 0, 0, 0, 0]);
    }

    // Number 18:0, event queue 31:22 (2 << 22 = 0x0080_0000) and valid 0x0002_0000, mask 0x0001_0000,
    // overflow check 0x4000; operation 3. The VSI begins at bit 8 of word 7.
    #[test]
    fn create_cq() {
        let create = CreateCq {
            cq_id: 3,
            entries: 130,
            ring: RingBase::Contiguous(0x5000),
            shadow: 0x6040,
            shadow_read_threshold: 65,
            ceq_id: Some(2),
            mask_events: true,
            check_overflow: true,
            vsi: 0x12,
        };

        assert!(create.encode() == [130, 3, 65, 0x0003_4003_0080_0003, 0x5000, 0x6040, 0, 0x1200,]);

        // A page list: virtual map 0x8000, one level 0x1000, and its index in place of the address.
        let create = CreateCq {
            ring: RingBase::PageList(0x123),
            ceq_id: None,
            ..create
        };
        assert!(create.encode() == [130, 3, 65, 0x0001_d003_0000_0003, 0, 0x6040, 0x123, 0x1200,]);
    }

    #[test]
    fn destroy_cq() {
        let destroy = DestroyCq {
            cq_id: 3,
            entries: 130,
            ring: RingBase::Contiguous(0x5000),
            shadow: 0x6040,
            ceq_id: Some(2),
            mask_events: true,
        };

        assert!(destroy.encode() == [130, 3, 0, 0x0003_0005_0080_0003, 0, 0x6040, 0, 0,]);
    }

    // Operations 0x16, 0x18, 0x19 and 0x1b.
    #[test]
    fn event_queues() {
        let ring = RingBase::Contiguous(0x7000);
        let create = CreateCeq {
            ceq_id: 1,
            entries: 512,
            ring,
            vsi: 0x12,
        };
        assert!(create.encode() == [0, 0, 512, 0x16_0000_0001, 0x7000, 0, 0, 0x1200]);

        let destroy = DestroyCeq {
            ceq_id: 1,
            entries: 512,
            ring,
        };
        assert!(destroy.encode() == [0, 0, 512, 0x18_0000_0001, 0, 0, 0, 0]);

        let create = CreateAeq { entries: 768, ring };
        assert!(create.encode() == [0, 0, 768, 0x19_0000_0000, 0x7000, 0, 0, 0]);

        let create = CreateAeq {
            entries: 768,
            ring: RingBase::PageList(0x88),
        };
        assert!(create.encode() == [0, 0, 768, 0x9019_0000_0000, 0, 0, 0x88, 0]);

        let destroy = DestroyAeq { entries: 768, ring };
        assert!(destroy.encode() == [0, 0, 768, 0x1b_0000_0000, 0, 0, 0, 0]);
    }

    fn region() -> RegMr {
        RegMr {
            index: 0x123,
            key: 0x45,
            pd: 9,
            va: 0x7000_1234,
            zero_based: false,
            length: 0x3000,
            page_size: PageSize::Size4K,
            region: RegionBase::Contiguous(0x8_0000_0000),
            access: AccessRights::from(AccessRight::LocalRead)
                | AccessRight::LocalWrite
                | AccessRight::RemoteRead
                | AccessRight::RemoteWrite,
            remote_atomics: false,
        }
    }

    // Region 0x0800, rights 0xf in 0x001f_0000, remote access 0x0020_0000, by virtual address
    // 0x0800_0000; operation 0xa. Word 1: domain 63:46 (9 << 46 = 0x0002_4000 << 32) above the
    // length; word 2: index above the key.
    #[test]
    fn register_region() {
        let register = region();

        assert!(
            register.encode()
                == [
                    0x7000_1234,
                    0x0002_4000_0000_3000,
                    0x1_2345,
                    0x082f_080a_0000_0000,
                    0x8_0000_0000,
                    0,
                    0,
                    0,
                ]
        );

        // One level is 1 in 0x3000, two are 3; 2 MiB pages are 1 in 0xc000.
        let one = RegMr {
            region: RegionBase::Level1(0x77),
            ..register
        };
        assert!(one.encode()[3..] == [0x082f_180a_0000_0000, 0, 0, 0x77, 0]);
        let two = RegMr {
            region: RegionBase::Level2(0x77),
            page_size: PageSize::Size2M,
            ..register
        };
        assert!(two.encode()[3..] == [0x082f_780a_0000_0000, 0, 0, 0x77, 0]);
    }

    // From zero: word 0 is the offset in the first page, and 0x0800_0000 is not set. Without remote
    // rights 0x0020_0000 is not.
    #[test]
    fn register_zero_based_region() {
        let register = RegMr {
            zero_based: true,
            access: AccessRights::from(AccessRight::LocalRead),
            ..region()
        };
        let words = register.encode();

        assert_eq!(words[0], 0x234);
        assert_eq!(words[3], 0x0001_080a_0000_0000);
        // A domain of more than 18 bits goes on at bit 54 of word 2.
        let register = RegMr {
            pd: 0x4_0001,
            ..register
        };
        let words = register.encode();
        assert_eq!(words[1], 0x0000_4000_0000_3000);
        assert_eq!(words[2], 0x0040_0000_0001_2345);
    }

    // Operations 9 and 0xd.
    #[test]
    fn keys() {
        let alloc = AllocStag {
            index: 0x123,
            pd: 9,
            length: 0x10_0000,
            page_size: PageSize::Size4K,
            page_list: Some(0x200),
            access: AccessRights::default(),
            remote_access: true,
        };
        assert!(
            alloc.encode()
                == [
                    0,
                    0x0002_4000_0010_0000,
                    0x1_2300,
                    0x0020_1809_0000_0000,
                    0,
                    0,
                    0x200,
                    0,
                ]
        );

        let dealloc = DeallocStag {
            index: 0x123,
            pd: 9,
            region: true,
        };
        assert!(
            dealloc.encode()
                == [
                    0,
                    0x0002_4000_0000_0000,
                    0x1_2300,
                    0x080d_0000_0000,
                    0,
                    0,
                    0,
                    0,
                ]
        );
    }

    // Number 15:0. Valid 0x0400, permanent 0x0800; operation 0xf. The MAC address' first byte is in 47:40.
    #[test]
    fn neighbours() {
        let add = AddArp {
            index: 0x105,
            mac: MAC,
            reach_max: 7,
            permanent: true,
        };

        assert!(add.encode() == [0, 7, 0x0211_2233_4455, 0x0c0f_0000_0105, 0, 0, 0, 0,]);
        assert!(DeleteArp { index: 0x105 }.encode() == [0, 0, 0, 0x0f_0000_0105, 0, 0, 0, 0]);

        let add = AddArp {
            index: 0xfedc,
            ..add
        };
        assert_eq!(add.encode()[3], 0x0c0f_0000_fedc);
        assert_eq!(DeleteArp { index: 0xfedc }.encode()[3], 0x0f_0000_fedc);
    }

    fn handle() -> AddressHandle {
        AddressHandle {
            index: 0x21,
            pd: 5,
            source_mac: MAC,
            vlan: None,
            arp_index: 0x17,
            traffic_class: 0x68,
            hop_limit: 64,
            flow_label: 0,
            destination: IpAddress::V4(0x0a00_0201),
            source: IpAddress::V4(0x0a00_0101),
            loopback: false,
        }
    }

    // Word 0: MAC address << 16. Word 1: domain 63:48, class 39:32, VLAN 15:0. Word 2: neighbour
    // 63:48, hop limit 39:32, flow label 19:0. IPv4 0x0800_0000; operation 0x1c.
    #[test]
    fn address_handle_of_ipv4() {
        assert!(
            CreateAh(handle()).encode()
                == [
                    0x0211_2233_4455_0000,
                    0x0005_0068_0000_0000,
                    0x0017_0040_0000_0000,
                    0x0800_001c_0000_0021,
                    0x0a00_0201,
                    0,
                    0x0a00_0101,
                    0,
                ]
        );
        assert_eq!(DestroyAh(handle()).encode()[3], 0x0800_001e_0000_0021);
    }

    // fd00::2 and fd00::1: the last 64 bits first. VLAN 0x1000_0000, loopback 0x4000_0000.
    #[test]
    fn address_handle_of_ipv6() {
        let handle = AddressHandle {
            vlan: Some(0x6005),
            flow_label: 0xa_bcde,
            destination: IpAddress::V6([0xfd00_0000, 0, 0, 2]),
            source: IpAddress::V6([0xfd00_0000, 0, 0, 1]),
            loopback: true,
            ..handle()
        };

        assert!(
            CreateAh(handle).encode()
                == [
                    0x0211_2233_4455_0000,
                    0x0005_0068_0000_6005,
                    0x0017_0040_000a_bcde,
                    0x5000_001c_0000_0021,
                    2,
                    0xfd00_0000_0000_0000,
                    1,
                    0xfd00_0000_0000_0000,
                ]
        );
    }

    // VLAN 0x0800_0000, IPv4 0x1000_0000; operation 0x26.
    #[test]
    fn multicast_group() {
        let group = McastGroup {
            index: 0x12,
            members: 0x9000,
            mac: [0x01, 0x00, 0x5e, 0x01, 0x02, 0x03],
            address: IpAddress::V4(0xe001_0203),
            vlan: Some(5),
            no_vlan: 0xfff,
            qs_handle: 0x44,
            hmc_function: 1,
        };

        assert!(
            CreateMcastGroup(group).encode()
                == [
                    0x0100_5e01_0203,
                    1,
                    0x0005_0000_0044,
                    0x1800_0026_0000_0012,
                    0x9000,
                    0,
                    0xe001_0203,
                    0,
                ]
        );
    }

    // Number of the function in word 2 and the buffer in word 4; operations 0x20, 0x21, 0x12, 0x2b.
    #[test]
    fn function_private_memory() {
        let query = QueryFpm {
            hmc_function: 2,
            buffer: 0xa000,
        };
        assert!(query.encode() == [0, 0, 2, 0x20_0000_0000, 0xa000, 0, 0, 0]);

        let commit = CommitFpm {
            hmc_function: 2,
            buffer: 0xa000,
            length: 208,
        };
        assert!(commit.encode() == [0, 0, 2, 0x21_0000_00d0, 0xa000, 0, 0, 0]);

        let query = QueryFeatures {
            buffer: 0xa000,
            length: 64,
        };
        assert!(query.encode() == [0, 0, 0, 0x12_0000_0040, 0xa000, 0, 0, 0]);

        let pages = ShmcPagesAllocated { hmc_function: 2 };
        assert!(pages.encode() == [0, 0, 2, 0x2b_0000_0000, 0, 0, 0, 0]);
    }

    // Command: bits 31 and 15, index. Data: address, 512 pages in 11:2 (0x800), direct 2, valid 1.
    // The second and third pair have a valid bit 63; what follows is counted in the header.
    #[test]
    fn segments() -> Result {
        let set = |index| SegmentUpdate {
            index,
            kind: SegmentKind::Direct,
            address: Some(0x4020_0000),
        };
        let clear = SegmentUpdate {
            index: 4,
            kind: SegmentKind::Paged,
            address: None,
        };

        let one = UpdateSds::new(1, &[set(3)]).ok_or(EINVAL)?;
        assert!(one.encode() == [0x8000_8003, 0x4020_0803, 1, 0x1f_0000_0000, 0, 0, 0, 0,]);
        assert!(one.spill().is_empty());

        let three = UpdateSds::new(1, &[set(3), clear, set(5)]).ok_or(EINVAL)?;
        assert!(
            three.encode()
                == [
                    0x8000_8003,
                    0x4020_0803,
                    1,
                    0x1f_0000_0000,
                    0x8000_0000_8000_8004,
                    0x800,
                    0x8000_0000_8000_8005,
                    0x4020_0803,
                ]
        );

        let eleven: [_; 11] = core::array::from_fn(|index| set(index as u32));
        let eleven = UpdateSds::new(1, &eleven).ok_or(EINVAL)?;
        assert_eq!(eleven.encode()[3], 0x1f_0000_0008);
        assert_eq!(eleven.spill().len(), 16);
        assert!(eleven.spill()[..2] == [0x8000_8003, 0x4020_0803]);
        assert!(eleven.spill()[14..] == [0x8000_800a, 0x4020_0803]);

        assert!(UpdateSds::new(1, &[]).is_none());
        assert!(UpdateSds::new(1, &[clear; 12]).is_none());
        Ok(())
    }

    // Node 13:0, parent 29:16; action in 0x00f0_0000, class in 0x0700_0000, priority in 0x1800_0000,
    // leaf 0x2000_0000, enabled 0x4000_0000; operation 0x2c. Word 4: VSI 63:48, weight 38:32.
    #[test]
    fn scheduler() {
        let node = WorkSchedNode {
            action: NodeAction::Add,
            id: 2,
            parent: 1,
            vsi: 0x12,
            leaf: true,
            enable: true,
            priority: NodePriority::WeightedRoundRobin,
            traffic_class: 3,
            weight: 1,
        };

        assert!(
            node.encode()
                == [
                    0,
                    0,
                    0,
                    0x6b00_002c_0001_0002,
                    0x0012_0001_0000_0000,
                    0,
                    0,
                    0,
                ]
        );
        let node = WorkSchedNode {
            action: NodeAction::Delete,
            leaf: false,
            enable: false,
            priority: NodePriority::Strict,
            traffic_class: 0,
            ..node
        };
        assert_eq!(node.encode()[3], 0x1020_002c_0001_0002);
    }

    // Operation 0x2e.
    #[test]
    fn statistics() {
        let gather = GatherStats {
            buffer: 0xb000,
            instance: None,
        };
        assert!(gather.encode() == [0, 0, 0, 0x2e_0000_0000, 0xb000, 0, 0, 0]);
        let gather = GatherStats {
            instance: Some(5),
            ..gather
        };
        assert_eq!(gather.encode()[3], 0x2000_002e_0000_0005);
    }

    #[test]
    fn errors() {
        let error = |major, minor| CommandError { major, minor };

        assert!(error(0xffff, 0x8002).errno() == EBUSY);
        assert!(error(0xffff, 0x8003).errno() == EIO);
        assert!(error(0xf000, 0x8002).errno() == EIO);
        assert!(error(0xffff, 0x8029).needs_reset());
        assert!(!error(0xf000, 0x8029).needs_reset());
        assert!(error(0xffff, 0x8006).harmless().is_some());
        assert!(error(0xffff, 0x8029).harmless().is_none());
        assert!(error(0xf000, 0x8006).harmless().is_none());
    }
}
