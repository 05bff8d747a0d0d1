/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of /sys/kernel/tracing/events/irdma_rs. What the numbers mean is said
 * where they come from: hw/cqp/command.rs (opcodes), hw/cqp/qp.rs (states),
 * hw/aeq/code.rs (events), uk/status.rs (flush codes).
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM irdma_rs

#if !defined(IRDMA_RS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IRDMA_RS_TRACE_H

#include <linux/device.h>
#include <linux/tracepoint.h>

#define irdma_rs_show_opcode(opcode)			\
	__print_symbolic(opcode,			\
		{ 0x00, "CREATE_QP" },			\
		{ 0x01, "MODIFY_QP" },			\
		{ 0x02, "DESTROY_QP" },			\
		{ 0x03, "CREATE_CQ" },			\
		{ 0x04, "MODIFY_CQ" },			\
		{ 0x05, "DESTROY_CQ" },			\
		{ 0x09, "ALLOC_STAG" },			\
		{ 0x0a, "REG_MR" },			\
		{ 0x0d, "DEALLOC_STAG" },		\
		{ 0x0f, "MANAGE_ARP" },			\
		{ 0x12, "QUERY_FEATURES" },		\
		{ 0x16, "CREATE_CEQ" },			\
		{ 0x18, "DESTROY_CEQ" },		\
		{ 0x19, "CREATE_AEQ" },			\
		{ 0x1b, "DESTROY_AEQ" },		\
		{ 0x1c, "CREATE_AH" },			\
		{ 0x1e, "DESTROY_AH" },			\
		{ 0x1f, "UPDATE_SDS" },			\
		{ 0x20, "QUERY_FPM" },			\
		{ 0x21, "COMMIT_FPM" },			\
		{ 0x22, "FLUSH_WQES" },			\
		{ 0x24, "NOP" },			\
		{ 0x26, "CREATE_MCAST_GROUP" },		\
		{ 0x27, "MODIFY_MCAST_GROUP" },		\
		{ 0x28, "DESTROY_MCAST_GROUP" },	\
		{ 0x29, "SUSPEND_QP" },			\
		{ 0x2a, "RESUME_QP" },			\
		{ 0x2b, "SHMC_PAGES_ALLOCATED" },	\
		{ 0x2c, "WORK_SCHED_NODE" },		\
		{ 0x2d, "MANAGE_STATS" },		\
		{ 0x2e, "GATHER_STATS" })

#define irdma_rs_show_state(state)			\
	__print_symbolic(state,				\
		{ 0, "NONE" },				\
		{ 1, "IDLE" },				\
		{ 2, "RTS" },				\
		{ 3, "SQD" },				\
		{ 4, "RTR" },				\
		{ 5, "TERMINATE" },			\
		{ 6, "ERROR" })

/* A command is in the control queue's ring, the doorbell comes next. */
TRACE_EVENT(irdma_cqp_command,
	TP_PROTO(const struct device *dev, u8 opcode, u32 slot),
	TP_ARGS(dev, opcode, slot),
	TP_STRUCT__entry(
		__string(device, dev_name(dev))
		__field(u8, opcode)
		__field(u32, slot)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->opcode = opcode;
		__entry->slot = slot;
	),
	TP_printk("%s %s slot=%u", __get_str(device),
		  irdma_rs_show_opcode(__entry->opcode), __entry->slot)
);

/* The device has completed a command. */
TRACE_EVENT(irdma_cqp_completion,
	TP_PROTO(const struct device *dev, u8 opcode, u32 slot, bool error,
		 u16 major, u16 minor, u32 value),
	TP_ARGS(dev, opcode, slot, error, major, minor, value),
	TP_STRUCT__entry(
		__string(device, dev_name(dev))
		__field(u8, opcode)
		__field(bool, error)
		__field(u16, major)
		__field(u16, minor)
		__field(u32, slot)
		__field(u32, value)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->opcode = opcode;
		__entry->error = error;
		__entry->major = major;
		__entry->minor = minor;
		__entry->slot = slot;
		__entry->value = value;
	),
	TP_printk("%s %s slot=%u %s major=%#x minor=%#x value=%#x", __get_str(device),
		  irdma_rs_show_opcode(__entry->opcode), __entry->slot,
		  __entry->error ? "failed" : "done", __entry->major,
		  __entry->minor, __entry->value)
);

/* A queue pair's state for the device has changed; NONE is before and after its life. */
TRACE_EVENT(irdma_qp_state,
	TP_PROTO(const struct device *dev, u32 qp, u8 from, u8 to),
	TP_ARGS(dev, qp, from, to),
	TP_STRUCT__entry(
		__string(device, dev_name(dev))
		__field(u32, qp)
		__field(u8, from)
		__field(u8, to)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->qp = qp;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("%s qp=%u %s -> %s", __get_str(device), __entry->qp,
		  irdma_rs_show_state(__entry->from), irdma_rs_show_state(__entry->to))
);

/* The device has raised an asynchronous event. */
TRACE_EVENT(irdma_async_event,
	TP_PROTO(const struct device *dev, u16 code, u8 source, u32 number, u16 wqe),
	TP_ARGS(dev, code, source, number, wqe),
	TP_STRUCT__entry(
		__string(device, dev_name(dev))
		__field(u16, code)
		__field(u8, source)
		__field(u32, number)
		__field(u16, wqe)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->code = code;
		__entry->source = source;
		__entry->number = number;
		__entry->wqe = wqe;
	),
	TP_printk("%s code=%#x source=%#x number=%u wqe=%u", __get_str(device),
		  __entry->code, __entry->source, __entry->number, __entry->wqe)
);

/* A queue pair's work requests are to come back. */
TRACE_EVENT(irdma_flush,
	TP_PROTO(const struct device *dev, u32 qp, bool sq, bool rq, u16 sq_code,
		 u16 rq_code),
	TP_ARGS(dev, qp, sq, rq, sq_code, rq_code),
	TP_STRUCT__entry(
		__string(device, dev_name(dev))
		__field(u32, qp)
		__field(bool, sq)
		__field(bool, rq)
		__field(u16, sq_code)
		__field(u16, rq_code)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->qp = qp;
		__entry->sq = sq;
		__entry->rq = rq;
		__entry->sq_code = sq_code;
		__entry->rq_code = rq_code;
	),
	TP_printk("%s qp=%u sq=%d rq=%d sq_code=%u rq_code=%u", __get_str(device),
		  __entry->qp, __entry->sq, __entry->rq, __entry->sq_code,
		  __entry->rq_code)
);

#endif /* IRDMA_RS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE irdma_rs_trace
#include <trace/define_trace.h>
