//! Instructions of Ruby's functions.
//!
//! In: code. Out: what it calls, and the variable of a thread that it asks for.

/// The loop loads its first instruction: `mov (%r15), %r14`.
pub(in crate::runtime) const LOAD: &[u8] = &[0x4d, 0x8b, 0x37];

/// Possible calls (`call rel32`) in code that begins at `begin`: where each is, and what it calls.
pub(in crate::runtime) fn calls(code: &[u8], begin: u64) -> impl Iterator<Item = (u64, u64)> {
    let windows = code.windows(5).enumerate();
    windows.filter_map(move |(place, bytes)| {
        let (&0xe8, distance) = bytes.split_first()? else {
            return None;
        };
        let distance = i32::from_le_bytes(distance.try_into().ok()?);
        let at = begin.wrapping_add(place as u64);
        let next = at.wrapping_add(5);
        Some((at, next.wrapping_add_signed(i64::from(distance))))
    })
}

/// The pair of words by which code, which begins at `begin`, first asks for a variable of a thread, to load its value (*ELF Handling
/// For Thread-Local Storage*, 4.1.6).
pub(in crate::runtime) fn thread_variable(code: &[u8], begin: u64) -> Option<u64> {
    /// `data16 lea DISTANCE(%rip), %rdi`.
    const ADDRESS: &[u8] = &[0x66, 0x48, 0x8d, 0x3d];
    /// Bytes of that, and of the call of `__tls_get_addr` behind it.
    const BYTES: usize = 8;
    /// `mov (%rax), %rax`: what is asked for is the variable's value.
    const LOAD: &[u8] = &[0x48, 0x8b, 0x00];
    let place = code.windows(ADDRESS.len()).position(|it| it == ADDRESS)?;
    let distance = code.get(place + ADDRESS.len()..place + BYTES)?;
    let behind = code.get(place + 2 * BYTES..)?;
    if !behind.starts_with(LOAD) {
        return None;
    }
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    let next = begin.checked_add((place + BYTES) as u64)?;
    Some(next.wrapping_add_signed(i64::from(distance)))
}
