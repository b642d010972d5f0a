//! Peaks of memory.

/// The most memory that a process has had, in bytes; `None` where the system does not tell.
pub(crate) fn peak(process: &str) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// What a program takes that has done nothing yet: itself, its runtime, what the allocator holds.
pub(crate) const PROGRAM: usize = 24 * 1024 * 1024;

/// Says what was taken, which must be within the bound.
pub(crate) fn check(what: &str, peak: usize, bound: usize) {
    const MIB: usize = 1024 * 1024;
    println!(
        "soak: {what}: {} MiB at most, bound {} MiB",
        peak / MIB,
        bound / MIB
    );
    assert!(peak <= bound, "{what}: {peak} bytes, bound {bound}");
}
