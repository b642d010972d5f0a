//! Who belongs to a group, and who has left it.

use rustix::process::{Pid, Signal};

use super::mark::GroupMark;

/// As what a group is known.
#[derive(Debug, Clone)]
pub(super) struct GroupIdentity {
    /// Its id, as long as nobody else can have it.
    pub(super) group: Option<Pid>,
    pub(super) mark: GroupMark,
}

/// Who is left of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemainingProcesses {
    Absent,
    Present,
    /// That cannot be seen here.
    Unknown,
}

#[cfg(target_os = "linux")]
pub(super) use linux::remaining;

/// Whether any process of the group runs. Systems other than Linux do not show what processes carry. A
/// group of which only its leader is left, which has ended, cannot be signalled.
#[cfg(not(target_os = "linux"))]
pub(super) fn look(known: GroupIdentity, _signal: Option<Signal>) -> RemainingProcesses {
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

    /// A question that waits for its answer.
    struct ScanRequest {
        identity: GroupIdentity,
        signal: Option<Signal>,
        answer: Arc<Mutex<Option<RemainingProcesses>>>,
    }

    /// How long one look may take: a process shows nothing while it executes a program or ends, and on a
    /// busy machine others come and go all the time. One that hangs, which may be anybody's, must not keep
    /// everything waiting.
    const PATIENCE: Duration = Duration::from_millis(500);

    /// The pause between two looks at such processes.
    const PAUSE: Duration = Duration::from_millis(1);

    /// The questions that nobody has begun to answer.
    static QUESTIONS: Mutex<Vec<ScanRequest>> = Mutex::new(Vec::new());

    /// Held by whoever looks at all processes.
    static LOOKING: Mutex<()> = Mutex::new(());

    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any process runs that is in the group or carries its mark. Those that carry it outside the
    /// group are sent `signal`, if there is one.
    ///
    /// Zombies do not run: where nobody adopts orphans, as in many containers, they stay for ever.
    ///
    /// What it costs: a file of `/proc` is read for each process of this user's, and one is refused for
    /// each of others': 40 ms where there are 1,100 processes and two busy cores. So it is not for the
    /// threads of an asynchronous runtime, and those who ask while one looks share the next look.
    pub(in super::super) fn remaining(
        known: GroupIdentity,
        signal: Option<Signal>,
    ) -> RemainingProcesses {
        let answer = Arc::default();
        lock(&QUESTIONS).push(ScanRequest {
            identity: known,
            signal,
            answer: Arc::clone(&answer),
        });
        let looking = lock(&LOOKING);
        if lock(&answer).is_none() {
            let mut asked: Vec<(ScanRequest, RemainingProcesses)> =
                std::mem::take(&mut *lock(&QUESTIONS))
                    .into_iter()
                    .map(|question| (question, RemainingProcesses::Absent))
                    .collect();
            let seen = inspect_all(&mut asked);
            for (question, left) in asked {
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

    /// Looks at each process for all who ask. Returns whether processes can be seen.
    ///
    /// A process may start another and end after `/proc` was listed and before it was looked at, and the
    /// other is not in the list: so daemons come to be. As long as that may have happened, the list is made
    /// again, and who is new in it is looked at. The list goes by ids, which rise, so that one who begins
    /// while it is made is in it if its parent could have been. The rest does not matter: it is a child of
    /// one that was seen, or of nobody who is asked for.
    fn inspect_all(asked: &mut [(ScanRequest, RemainingProcesses)]) -> bool {
        let start = Instant::now();
        let mut environment = Vec::new();
        let mut known = HashSet::new();
        loop {
            let Ok(processes) = std::fs::read_dir("/proc") else {
                return false;
            };
            // All of it, before the first is looked at.
            let mut news: Vec<Pid> = processes
                .flatten()
                .filter_map(|process| process_id(&process.file_name()))
                .filter(|id| known.insert(*id))
                .collect();
            let mut again = false;
            let mut pause = Duration::ZERO;
            // Whose those are that are between two programs is known in a moment.
            while !news.is_empty() {
                std::thread::sleep(pause);
                pause = PAUSE;
                news.retain(|id| {
                    let sight = inspect_process(*id, asked, &mut environment);
                    again |= sight == EnvironmentSight::Ended;
                    sight == EnvironmentSight::Transient && start.elapsed() < PATIENCE
                });
            }
            if !again || start.elapsed() >= PATIENCE {
                return true;
            }
        }
    }

    /// Looks at one process for all who ask.
    fn inspect_process(
        id: Pid,
        asked: &mut [(ScanRequest, RemainingProcesses)],
        environment: &mut Vec<u8>,
    ) -> EnvironmentSight {
        let group = match process_group(id) {
            Ok(Some(group)) if id != rustix::process::getpid() => group,
            Ok(_) => return EnvironmentSight::Hidden,
            Err(_) => return EnvironmentSight::Ended,
        };
        let is_in = |known: &GroupIdentity| known.group == Some(group);
        if asked.iter().any(|(question, _)| is_in(&question.identity))
            && !ProcessStat::read(id).is_some_and(|stat| stat.is_running)
        {
            return EnvironmentSight::Ended;
        }
        let sight = read_environment(id, environment);
        for (question, left) in asked {
            if is_in(&question.identity) {
                *left = RemainingProcesses::Present;
            } else if sight == EnvironmentSight::Read
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

    /// The group of a process; the kernel's own have none. The system tells this without a file.
    ///
    /// # Errors
    ///
    /// There is no such process (any more).
    #[allow(unsafe_code)]
    fn process_group(id: Pid) -> io::Result<Option<Pid>> {
        // SAFETY: it takes a number and gives a number. It is not rustix's because that takes no process
        // to be without a group.
        match unsafe { libc::getpgid(id.as_raw_pid()) } {
            -1 => Err(io::Error::last_os_error()),
            group => Ok(Pid::from_raw(group)),
        }
    }

    /// What was seen of the environment that a process was started with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum EnvironmentSight {
        /// All of it.
        Read,
        /// It has none: it is executing a program or ending.
        Transient,
        /// It is another user's process, or the kernel's, or keeps to itself.
        Hidden,
        /// It has ended, and nobody can say whose it was.
        Ended,
    }

    /// Reads the environment of a process.
    fn read_environment(id: Pid, environment: &mut Vec<u8>) -> EnvironmentSight {
        // A process that executes a program after its file was opened and before it was read shows nothing,
        // though it has finished by then. One that shows nothing again and again was given nothing.
        for _ in 0..3 {
            environment.clear();
            let read = File::open(format!("/proc/{}/environ", id.as_raw_pid()))
                .and_then(|mut file| file.read_to_end(environment));
            match read {
                Ok(1..) => return EnvironmentSight::Read,
                Ok(0) => {}
                // So newer kernels say that there is none.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return EnvironmentSight::Ended;
                }
                Err(_) => return EnvironmentSight::Hidden,
            }
            match ProcessStat::read(id) {
                Some(stat) if stat.is_transient => return EnvironmentSight::Transient,
                Some(stat) if stat.is_running => {}
                Some(_) | None => return EnvironmentSight::Ended,
            }
        }
        EnvironmentSight::Read
    }

    fn has_mark(environment: &[u8], mark: &GroupMark) -> bool {
        memchr::memmem::find(environment, mark.own().as_bytes()).is_some()
    }

    /// Signals a process that carries the mark, and never another that has got its id since.
    fn send_signal(id: Pid, mark: &GroupMark, signal: Signal) {
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) => {
                let mut environment = Vec::new();
                if read_environment(id, &mut environment) == EnvironmentSight::Read
                    && has_mark(&environment, mark)
                {
                    let _ = pidfd_send_signal(process, signal);
                }
            }
            Err(rustix::io::Errno::SRCH) => {}
            // A kernel before 5.3.
            Err(_) => {
                let _ = rustix::process::kill_process(id, signal);
            }
        }
    }

    /// What `/proc/PID/stat` says of a process.
    struct ProcessStat {
        /// It has not ended.
        is_running: bool,
        /// It is executing a program at this moment, or it is ending.
        is_transient: bool,
    }

    impl ProcessStat {
        fn read(id: Pid) -> Option<Self> {
            /// A flag of the kernel's: one of its own threads.
            const PF_KTHREAD: u64 = 0x0020_0000;

            let stat = std::fs::read(format!("/proc/{}/stat", id.as_raw_pid())).ok()?;
            // The name, in parentheses, may itself hold spaces and parentheses. It is the second field;
            // the next one is the third.
            let name = memchr::memrchr(b')', &stat)?;
            let rest = String::from_utf8_lossy(stat.get(name + 1..)?);
            let mut fields = rest.split_ascii_whitespace();
            let runs = !matches!(fields.next()?, "Z" | "X");
            let flags: u64 = fields.nth(9 - 4)?.parse().ok()?;
            // Where its code begins, which is known when it has all that it is started with. Of processes
            // that are hidden it is said to be 1.
            let code_begins: u64 = fields.nth(26 - 10)?.parse().ok()?;
            Some(Self {
                is_running: runs,
                is_transient: runs && flags & PF_KTHREAD == 0 && code_begins == 0,
            })
        }
    }
}
