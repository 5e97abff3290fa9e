//! Instructions of LuaJIT's interpreter.
//!
//! In: its code. Out: where it keeps the running state.

/// Bytes of the interpreter's native frame.
pub(in crate::runtime) const FRAME_BYTES: u64 = 80;

/// Where `cur_L` is in a `global_State`: `lj_vm_call` adds to that what leads to the table of instructions, in r14, and stores the
/// state relative to that.
pub(in crate::runtime) fn current_state(code: &[u8]) -> Option<u64> {
    let number = |bytes: &[u8]| Some(i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?));
    // add $imm32, %r14
    let table = code.windows(7).find_map(|bytes| {
        let distance = bytes.strip_prefix(&[0x49, 0x81, 0xc6])?;
        number(distance)
    })?;
    // mov %rbp, disp32(%r14); movl $-1, disp32(%r14)
    let state = code.windows(18).find_map(|bytes| {
        let rest = bytes.strip_prefix(&[0x49, 0x89, 0xae])?;
        let marks = &rest[4..];
        let is_followed = marks.starts_with(&[0x41, 0xc7, 0x86]) && marks[7..] == [0xff; 4];
        is_followed.then(|| number(rest))?
    })?;
    let place = i64::from(table) + i64::from(state);
    u64::try_from(place).ok().filter(|place| *place < 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_state_is_where_the_interpreter_puts_it() {
        let mut code = vec![0x90; 8];
        code.extend([0x49, 0x81, 0xc6, 0xa8, 0x0f, 0, 0, 0x90]);
        code.extend([0x49, 0x89, 0xae, 0xc8, 0xf1, 0xff, 0xff]);
        code.extend([
            0x41, 0xc7, 0x86, 0x10, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        ]);
        assert_eq!(current_state(&code), Some(0x170));
        assert_eq!(current_state(&code[..20]), None);
    }
}
