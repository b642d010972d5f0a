//! Measures the peak memory of a process.

/// Returns the peak memory of a process in bytes, or `None` if the system does not report it.
pub(crate) fn peak_memory(process: &str) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The memory of a program before it does anything: its code, the runtime, and the allocator's reserves.
pub(crate) const PROGRAM_BYTES: usize = 24 * 1024 * 1024;

/// Prints the peak memory, and checks that it is within the bound.
pub(crate) fn check_peak(what: &str, peak: usize, bound: usize) {
    const MIB: usize = 1024 * 1024;
    println!(
        "soak: {what}: {} MiB at most, bound {} MiB",
        peak / MIB,
        bound / MIB
    );
    assert!(peak <= bound, "{what}: {peak} bytes, bound {bound}");
}
