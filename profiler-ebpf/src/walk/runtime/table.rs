//! Subprograms of each runtime, made of the table of runtimes, and what finds those of the runtime with a number.
//!
//! In: a runtime's number. Out: a call of its subprogram. Never: another list of runtimes than
//! [`profiler_common::runtimes`].

use super::{File, View, code_owner, level, put_function, put_strings, step};
use crate::platform::{config::config, maps::Scratch, memory::UserMemory, subprog::subprog};
use core::ops::ControlFlow;
use profiler_common::{
    abi::StackEnd,
    runtime::{self, Chain, CodeOwner, FrameFunction, FunctionInfo, RuntimeKind},
};

/// Whether frames of this runtime are shown. The verifier drops what belongs to others.
#[inline(always)]
fn is_shown(kind: RuntimeKind) -> bool {
    config!(runtimes).has(kind)
}

/// Makes of the table of runtimes their subprograms, and what finds those of the runtime with a number.
macro_rules! subprograms {
    (
        $(
            $kind:ident $strings:ident
            $(, chain $chain:ident $level:ident $step:ident)?
            $(, code $owner:ident $leave:ident)?
            $(, frame $framed:ident $function:ident)?;
        )+
    ) => {
        $(
            $(
                subprog! {
                    fn $level(cpu_slot: u32) -> ControlFlow<u64> {
                        if !is_shown(RuntimeKind::$kind) {
                            return ControlFlow::Continue(());
                        }
                        level::<runtime::$chain>(cpu_slot, RuntimeKind::$kind)
                    }
                }

                subprog! {
                    fn $step(cpu_slot: u32) -> ControlFlow<u64> {
                        if !is_shown(RuntimeKind::$kind) {
                            return ControlFlow::Break(StackEnd::Truncated as u64);
                        }
                        step::<runtime::$chain>(cpu_slot, RuntimeKind::$kind)
                    }
                }
            )?

            subprog! {
                fn $strings(cpu_slot: u32, function: u64) -> bool {
                    is_shown(RuntimeKind::$kind)
                        && put_strings::<runtime::$kind>(cpu_slot, RuntimeKind::$kind, function)
                            .is_some()
                }
            }

            $(
                subprog! {
                    fn $function(cpu_slot: u32) -> ControlFlow<u64> {
                        if !is_shown(RuntimeKind::$kind) {
                            return ControlFlow::Continue(());
                        }
                        put_function::<runtime::$framed>(cpu_slot, RuntimeKind::$kind)
                    }
                }
            )?

            $(
                subprog! {
                    fn $leave(cpu_slot: u32) -> bool {
                        is_shown(RuntimeKind::$kind)
                            && code_owner::to_caller::<runtime::$owner>(cpu_slot, RuntimeKind::$kind)
                                .is_some()
                    }
                }
            )?
        )+

        /// The level, or the frame's function, of the runtime with this number.
        #[inline(always)]
        pub(super) fn level_of(kind: u64, cpu_slot: u32) -> ControlFlow<u64> {
            $($(if kind == RuntimeKind::$kind as u64 {
                return $level(cpu_slot);
            })?)+
            $($(if kind == RuntimeKind::$kind as u64 {
                return $function(cpu_slot);
            })?)+
            ControlFlow::Continue(())
        }

        /// A step along the chain of the runtime with this number.
        #[inline(always)]
        pub(super) fn step_of(kind: u64, cpu_slot: u32) -> ControlFlow<u64> {
            $($(if kind == RuntimeKind::$kind as u64 {
                return $step(cpu_slot);
            })?)+
            ControlFlow::Break(StackEnd::Truncated as u64)
        }

        /// See [`Chain::OUTLIVES_NATIVE_FRAMES`]: bits of the runtimes' numbers, as below.
        pub(super) const OUTLIVE_NATIVE_FRAMES: u64 =
            0 $($(| (<runtime::$chain as Chain>::OUTLIVES_NATIVE_FRAMES as u64) << RuntimeKind::$kind as u64)?)+;

        /// See [`Chain::MAKES_CODE`].
        pub(super) const MAKE_CODE: u64 =
            0 $($(| (<runtime::$chain as Chain>::MAKES_CODE as u64) << RuntimeKind::$kind as u64)?)+;

        /// See [`Chain::BOUNDARY`], of the runtime with this number; none if it has none.
        #[inline(always)]
        pub(super) fn boundary_of(kind: u64) -> Option<usize> {
            $($(if kind == RuntimeKind::$kind as u64 {
                return <runtime::$chain as Chain>::BOUNDARY;
            })?)+
            None
        }

        /// The runtimes with [`FrameFunction`]s.
        pub(super) const HAVE_FRAME_FUNCTIONS: u64 = 0 $($(| 1 << RuntimeKind::$framed as u64)?)+;

        /// See [`Chain::may_run_level`] and [`FrameFunction::may_have_function`], of the runtime with this number.
        #[inline(always)]
        pub(super) fn may_run_level_of(kind: u64, file: &File, address: u64) -> bool {
            $($(if kind == RuntimeKind::$kind as u64 {
                return <runtime::$chain as Chain>::may_run_level(file, address);
            })?)+
            $($(if kind == RuntimeKind::$kind as u64 {
                return <runtime::$framed as FrameFunction>::may_have_function(file, address);
            })?)+
            RUN_NOTHING >> kind & 1 == 0
        }

        /// See [`FunctionInfo::NAMED_BY_CALLER`].
        pub(crate) const NAMED_BY_CALLER: u64 =
            0 $(| (<runtime::$kind as FunctionInfo>::NAMED_BY_CALLER as u64) << RuntimeKind::$kind as u64)+;

        /// Puts where the strings of a function of the runtime with this number lie into the scratch memory, which has the place of
        /// its frame in the stack; false if there is no such function.
        #[inline(always)]
        pub(crate) fn strings_of(kind: u64, cpu_slot: u32, function: u64) -> bool {
            $(if kind == RuntimeKind::$kind as u64 {
                return $strings(cpu_slot, function);
            })+
            false
        }

        /// The runtimes with [`Chain`]s.
        const CHAINS: u64 = 0 $($(| {
            let _ = <runtime::$chain as Chain>::MAKES_CODE;
            1 << RuntimeKind::$kind as u64
        })?)+;

        /// The runtimes of which frames in their own file run nothing.
        pub(super) const RUN_NOTHING: u64 = CODE_OWNERS & !CHAINS & !HAVE_FRAME_FUNCTIONS;

        /// The [`CodeOwner`]s.
        pub(super) const CODE_OWNERS: u64 = 0 $($(| 1 << RuntimeKind::$owner as u64)?)+;

        /// Leaves the code of the runtime with this number, if the frame is in it.
        #[inline(always)]
        pub(super) fn leave_code_of(kind: u64, cpu_slot: u32) -> bool {
            $($(if kind == RuntimeKind::$kind as u64 {
                return $leave(cpu_slot);
            })?)+
            false
        }

        /// See [`code_owner::known_to_caller`], of the runtime with this number.
        #[inline(always)]
        pub(super) fn known_to_caller_of(kind: u64, scratch: &'static Scratch) -> Option<()> {
            $($(if kind == RuntimeKind::$kind as u64 && is_shown(RuntimeKind::$kind) {
                return code_owner::known_to_caller::<runtime::$owner>(scratch, RuntimeKind::$kind);
            })?)+
            None
        }

        /// See [`CodeOwner::anchor`], of the runtime with this number.
        #[inline(always)]
        pub(super) fn anchor_of(kind: u64, register: impl Fn(u8) -> u64) -> Option<u64> {
            $($(if kind == RuntimeKind::$kind as u64 {
                return <runtime::$owner as CodeOwner>::anchor(&UserMemory, register);
            })?)+
            None
        }

        /// The stack pointer of the innermost frame, at an address of its object's own, if that is of the runtime with this number
        /// and [misplaced](CodeOwner::misplaces_stack_pointer).
        #[inline(always)]
        pub(super) fn stack_pointer_of(
            kind: u64,
            scratch: &'static Scratch,
            address: u64,
        ) -> Option<u64> {
            $($(if kind == RuntimeKind::$kind as u64 {
                let view = View::of(scratch, RuntimeKind::$kind)?;
                if <runtime::$owner as CodeOwner>::misplaces_stack_pointer(&view, address) {
                    return code_owner::find::<runtime::$owner>(&view);
                }
            })?)+
            None
        }
    };
}

profiler_common::runtimes!(subprograms);
