//! Reads the resource usage of processes from the system, and pins processes to a processor.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the processor that pinned processes share: the last one available to this process.
pub(crate) fn last_cpu() -> io::Result<usize> {
    let allowed = sched_getaffinity(None)?;
    (0..CpuSet::MAX_CPU)
        .rev()
        .find(|&processor| allowed.is_set(processor))
        .ok_or_else(|| io::Error::other("no processor is allowed"))
}

/// Returns the number of processors available to this process.
pub(crate) fn cpu_count() -> usize {
    sched_getaffinity(None).map_or(0, |allowed| allowed.count() as usize)
}

/// Runs a closure on the given processor, or on any processor if none is given. Processes that it starts stay there.
pub(crate) fn run_on<T: Send>(
    processor: Option<usize>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(processor) = processor else {
        return work();
    };
    // Use a separate thread, so that this thread is not pinned.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut set = CpuSet::new();
            set.set(processor);
            sched_setaffinity(None, &set)?;
            work()
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    })
}

/// Returns the CPU time that a process has used in all threads, including those that have ended.
#[allow(unsafe_code)]
pub(crate) fn cpu_time(process: u32) -> io::Result<Duration> {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let process = process.cast_signed();
    // SAFETY: each call writes to one local variable, of the documented type.
    let failed = unsafe {
        match libc::clock_getcpuclockid(process, &raw mut clock) {
            0 => libc::clock_gettime(clock, &raw mut time) != 0,
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Ok(Duration::new(seconds, nanoseconds))
}

/// The memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMemory {
    /// The current resident memory.
    pub(crate) now: u64,
    /// The peak resident memory since [`reset_peak_memory`].
    pub(crate) peak: u64,
}

pub(crate) fn process_memory(process: u32) -> io::Result<ProcessMemory> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        number
            .map(|kibibytes| kibibytes * 1024)
            .ok_or_else(|| io::Error::other(format!("cannot read {name} of process {process}")))
    };
    Ok(ProcessMemory {
        now: field("VmRSS:")?,
        peak: field("VmHWM:")?,
    })
}

/// Resets the peak memory of a process.
pub(crate) fn reset_peak_memory(process: u32) -> io::Result<()> {
    fs::write(format!("/proc/{process}/clear_refs"), "5")
}

/// Describes the machine for readers of the report.
pub(crate) fn machine_description() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo");
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches(['\t', ' ', ':'])
        });
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{} of {model}, Linux {}",
        cpu_count(),
        kernel.trim().split('-').next().unwrap_or_default()
    )
}
