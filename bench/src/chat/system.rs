//! Reads the resource usage of an idle process from the system.

use std::fs;
use std::io;

/// Returns the CPU time that a process has used in all threads, in clock ticks (100 per second).
pub(super) fn cpu_ticks(process: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The fields follow the name, which is in brackets and can contain anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let field = |at: usize| fields.split_whitespace().nth(at)?.parse::<u64>().ok();
    field(11)
        .zip(field(12))
        .map(|(user, system)| user + system)
        .ok_or_else(|| io::Error::other(format!("cannot read the CPU times of process {process}")))
}

/// Returns the number of times that the threads of a process have blocked since they were started.
pub(super) fn wakeup_count(process: u32) -> io::Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += line
            .and_then(|line| line.trim().parse::<u64>().ok())
            .unwrap_or_default();
    }
    Ok(sum)
}
