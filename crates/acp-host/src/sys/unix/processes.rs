//! Finds the processes of a group, including those that have left it.

use rustix::process::{Pid, Signal};

use super::mark::GroupMark;

/// The properties that identify the processes of a group.
#[derive(Debug, Clone)]
pub(super) struct GroupIdentity {
    /// The id of the process group, as long as it cannot be reused.
    pub(super) group: Option<Pid>,
    pub(super) mark: GroupMark,
}

/// The result of looking for a group's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemainingProcesses {
    Absent,
    Present,
    /// The system does not show whether any processes remain.
    Unknown,
}

#[cfg(target_os = "linux")]
pub(super) use linux::find_remaining;

/// Returns whether any process in the group is running. Systems other than Linux do not show a process's environment. A
/// group whose only remaining process is its exited leader cannot be signaled.
#[cfg(not(target_os = "linux"))]
pub(super) fn find_remaining(known: GroupIdentity, _signal: Option<Signal>) -> RemainingProcesses {
    match known.group.map(rustix::process::test_kill_process_group) {
        Some(Ok(())) => RemainingProcesses::Present,
        Some(Err(_)) => RemainingProcesses::Absent,
        None => RemainingProcesses::Unknown,
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::{self, Read};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    use super::{GroupIdentity, GroupMark, Pid, RemainingProcesses, Signal};

    /// A request to look for the processes of a group.
    struct ScanRequest {
        identity: GroupIdentity,
        signal: Option<Signal>,
        answer: Arc<Mutex<Option<RemainingProcesses>>>,
    }

    /// The maximum duration of a scan. The environment of a process cannot be read while it is exiting or starting a
    /// new program. On a busy machine, there are always some such processes, and one that hangs, perhaps another
    /// user's, must not block the scan.
    const SCAN_TIMEOUT: Duration = Duration::from_millis(500);

    /// How long to wait before rechecking a process whose environment could not be read.
    const RETRY_DELAY: Duration = Duration::from_millis(1);

    /// The requests that have not been processed by any scan yet.
    static PENDING_SCANS: Mutex<Vec<ScanRequest>> = Mutex::new(Vec::new());

    /// A lock that is held during a scan of all processes.
    static SCAN_LOCK: Mutex<()> = Mutex::new(());

    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether any process in the group, or with its mark, is running. Sends `signal`, if given, to processes
    /// outside the group that have the mark.
    ///
    /// Zombies do not count, because in many containers nothing reaps orphans and they remain forever.
    ///
    /// Cost: reads one file in `/proc` for each process of this user, and fails to read one for each process of other
    /// users. For 1,100 processes on two busy cores, this takes 40 ms, so do not call it on the threads of an
    /// asynchronous runtime. Requests that arrive during a scan share the next one.
    pub(in super::super) fn find_remaining(
        known: GroupIdentity,
        signal: Option<Signal>,
    ) -> RemainingProcesses {
        let answer = Arc::default();
        lock(&PENDING_SCANS).push(ScanRequest {
            identity: known,
            signal,
            answer: Arc::clone(&answer),
        });
        let looking = lock(&SCAN_LOCK);
        if lock(&answer).is_none() {
            let mut requests: Vec<(ScanRequest, RemainingProcesses)> =
                std::mem::take(&mut *lock(&PENDING_SCANS))
                    .into_iter()
                    .map(|question| (question, RemainingProcesses::Absent))
                    .collect();
            let seen = inspect_all(&mut requests);
            for (question, left) in requests {
                *lock(&question.answer) = Some(if seen {
                    left
                } else {
                    RemainingProcesses::Unknown
                });
            }
        }
        drop(looking);
        let answer = *lock(&answer);
        answer.unwrap_or(RemainingProcesses::Unknown)
    }

    /// Inspects each process for all requests. Returns `true` if the system's processes are visible.
    ///
    /// A process may start another process and exit after `/proc` was listed but before it was inspected, as daemons
    /// do. The new process is then not in the list. While that is possible, the list is read again and new processes
    /// are inspected. The list is in ascending order of ids, so a process that starts while the list is read is in it
    /// if its parent could have been. Other processes do not matter: their parents have been inspected, or are not in
    /// any requested group.
    fn inspect_all(requests: &mut [(ScanRequest, RemainingProcesses)]) -> bool {
        let start = Instant::now();
        let mut environment = Vec::new();
        let mut known = HashSet::new();
        loop {
            let Ok(processes) = std::fs::read_dir("/proc") else {
                return false;
            };
            // Read completely before the first process is inspected.
            let mut news: Vec<Pid> = processes
                .flatten()
                .filter_map(|process| process_id(&process.file_name()))
                .filter(|id| known.insert(*id))
                .collect();
            let mut again = false;
            let mut pause = Duration::ZERO;
            // Processes that are between two programs can be identified shortly after.
            while !news.is_empty() {
                std::thread::sleep(pause);
                pause = RETRY_DELAY;
                news.retain(|id| {
                    let sight = inspect_process(*id, requests, &mut environment);
                    again |= sight == EnvironmentStatus::Ended;
                    sight == EnvironmentStatus::Transient && start.elapsed() < SCAN_TIMEOUT
                });
            }
            if !again || start.elapsed() >= SCAN_TIMEOUT {
                return true;
            }
        }
    }

    /// Inspects a process for all requests of a scan.
    fn inspect_process(
        id: Pid,
        requests: &mut [(ScanRequest, RemainingProcesses)],
        environment: &mut Vec<u8>,
    ) -> EnvironmentStatus {
        let group = match process_group(id) {
            Ok(Some(group)) if id != rustix::process::getpid() => group,
            Ok(_) => return EnvironmentStatus::Hidden,
            Err(_) => return EnvironmentStatus::Ended,
        };
        let is_in = |known: &GroupIdentity| known.group == Some(group);
        if requests
            .iter()
            .any(|(question, _)| is_in(&question.identity))
            && !ProcessStat::read(id).is_some_and(|stat| stat.is_running)
        {
            return EnvironmentStatus::Ended;
        }
        let sight = read_environment(id, environment);
        for (question, left) in requests {
            if is_in(&question.identity) {
                *left = RemainingProcesses::Present;
            } else if sight == EnvironmentStatus::Read
                && has_mark(environment, &question.identity.mark)
            {
                *left = RemainingProcesses::Present;
                if let Some(signal) = question.signal {
                    send_signal(id, &question.identity.mark, signal);
                }
            }
        }
        sight
    }

    fn process_id(name: &OsStr) -> Option<Pid> {
        Pid::from_raw(name.to_str()?.parse().ok()?)
    }

    /// Returns the process group of a process, or `None` if it belongs to the kernel. Reads no files.
    ///
    /// # Errors
    ///
    /// The process does not exist (any more).
    #[allow(unsafe_code)]
    fn process_group(id: Pid) -> io::Result<Option<Pid>> {
        // SAFETY: the call takes a number and returns a number. rustix's function is not used, because it assumes that
        // every process has a group.
        match unsafe { libc::getpgid(id.as_raw_pid()) } {
            -1 => Err(io::Error::last_os_error()),
            group => Ok(Pid::from_raw(group)),
        }
    }

    /// The result of reading another process's environment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum EnvironmentStatus {
        /// The entire environment was read.
        Read,
        /// The environment is currently empty, because the process is starting a new program or exiting.
        Transient,
        /// The process belongs to another user or to the kernel, or cannot be read.
        Hidden,
        /// The process has exited, so its owner is unknown.
        Ended,
    }

    /// Reads the environment of a process.
    fn read_environment(id: Pid, environment: &mut Vec<u8>) -> EnvironmentStatus {
        // A process that starts another program between the opening and the reading of its file shows nothing, although
        // it has finished by then. A process that repeatedly shows nothing has an empty environment.
        for _ in 0..3 {
            environment.clear();
            let read = File::open(format!("/proc/{}/environ", id.as_raw_pid()))
                .and_then(|mut file| file.read_to_end(environment));
            match read {
                Ok(1..) => return EnvironmentStatus::Read,
                Ok(0) => {}
                // Newer kernels report an empty environment this way.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return EnvironmentStatus::Ended;
                }
                Err(_) => return EnvironmentStatus::Hidden,
            }
            match ProcessStat::read(id) {
                Some(stat) if stat.is_transient => return EnvironmentStatus::Transient,
                Some(stat) if stat.is_running => {}
                Some(_) | None => return EnvironmentStatus::Ended,
            }
        }
        EnvironmentStatus::Read
    }

    fn has_mark(environment: &[u8], mark: &GroupMark) -> bool {
        memchr::memmem::find(environment, mark.id().as_bytes()).is_some()
    }

    /// Sends a signal to a process that has the mark, but never to an unrelated process that has reused its id.
    fn send_signal(id: Pid, mark: &GroupMark, signal: Signal) {
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) => {
                let mut environment = Vec::new();
                if read_environment(id, &mut environment) == EnvironmentStatus::Read
                    && has_mark(&environment, mark)
                {
                    let _ = pidfd_send_signal(process, signal);
                }
            }
            Err(rustix::io::Errno::SRCH) => {}
            // The kernel is older than 5.3.
            Err(_) => {
                let _ = rustix::process::kill_process(id, signal);
            }
        }
    }

    /// The fields of `/proc/PID/stat` that a scan needs.
    struct ProcessStat {
        /// Whether the process is still running, that is, has not exited.
        is_running: bool,
        /// Whether the process is currently starting a new program or exiting.
        is_transient: bool,
    }

    impl ProcessStat {
        fn read(id: Pid) -> Option<Self> {
            /// The flag in `/proc/PID/stat` that marks kernel threads.
            const PF_KTHREAD: u64 = 0x0020_0000;

            let stat = std::fs::read(format!("/proc/{}/stat", id.as_raw_pid())).ok()?;
            // The program's name, in parentheses, may itself contain spaces and parentheses. It is the second field,
            // and the rest starts with the third.
            let name = memchr::memrchr(b')', &stat)?;
            let rest = String::from_utf8_lossy(stat.get(name + 1..)?);
            let mut fields = rest.split_ascii_whitespace();
            let runs = !matches!(fields.next()?, "Z" | "X");
            let flags: u64 = fields.nth(9 - 4)?.parse().ok()?;
            // The start address of the program's code, which is set after its arguments and environment. For hidden
            // processes, it is reported as 1.
            let code_begins: u64 = fields.nth(26 - 10)?.parse().ok()?;
            Some(Self {
                is_running: runs,
                is_transient: runs && flags & PF_KTHREAD == 0 && code_begins == 0,
            })
        }
    }
}
