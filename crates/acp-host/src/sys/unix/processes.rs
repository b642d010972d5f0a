//! Who belongs to a group, and who has left it.

use rustix::process::{Pid, Signal};

use super::mark::Mark;

/// As what a group is known.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Its id, as long as nobody else can have it.
    pub(super) group: Option<Pid>,
    pub(super) mark: Mark,
}

/// Who is left of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nobody,
    Somebody,
    /// That cannot be seen here.
    Unseen,
}

#[cfg(target_os = "linux")]
pub(super) use linux::look;

/// Whether any process of the group runs. Systems other than Linux do not show what processes carry. A
/// group of which only its leader is left, which has ended, cannot be signalled.
#[cfg(not(target_os = "linux"))]
pub(super) fn look(known: Known, _signal: Option<Signal>) -> Left {
    match known.group.map(rustix::process::test_kill_process_group) {
        Some(Ok(())) => Left::Somebody,
        Some(Err(_)) => Left::Nobody,
        None => Left::Unseen,
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

    use super::{Known, Left, Mark, Pid, Signal};

    /// A question that waits for its answer.
    struct Question {
        known: Known,
        signal: Option<Signal>,
        answer: Arc<Mutex<Option<Left>>>,
    }

    /// How long one look may take: a process shows nothing while it executes a program or ends, and on a
    /// busy machine others come and go all the time. One that hangs, which may be anybody's, must not keep
    /// everything waiting.
    const PATIENCE: Duration = Duration::from_millis(500);

    /// The pause between two looks at such processes.
    const PAUSE: Duration = Duration::from_millis(1);

    /// The questions that nobody has begun to answer.
    static QUESTIONS: Mutex<Vec<Question>> = Mutex::new(Vec::new());

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
    pub(in super::super) fn look(known: Known, signal: Option<Signal>) -> Left {
        let answer = Arc::default();
        lock(&QUESTIONS).push(Question {
            known,
            signal,
            answer: Arc::clone(&answer),
        });
        let looking = lock(&LOOKING);
        if lock(&answer).is_none() {
            let mut asked: Vec<(Question, Left)> = std::mem::take(&mut *lock(&QUESTIONS))
                .into_iter()
                .map(|question| (question, Left::Nobody))
                .collect();
            let seen = look_at_all(&mut asked);
            for (question, left) in asked {
                *lock(&question.answer) = Some(if seen { left } else { Left::Unseen });
            }
        }
        drop(looking);
        let answer = *lock(&answer);
        answer.unwrap_or(Left::Unseen)
    }

    /// Looks at each process for all who ask. Returns whether processes can be seen.
    ///
    /// A process may start another and end after `/proc` was listed and before it was looked at, and the
    /// other is not in the list: so daemons come to be. As long as that may have happened, the list is made
    /// again, and who is new in it is looked at. The list goes by ids, which rise, so that one who begins
    /// while it is made is in it if its parent could have been. The rest does not matter: it is a child of
    /// one that was seen, or of nobody who is asked for.
    fn look_at_all(asked: &mut [(Question, Left)]) -> bool {
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
                    let sight = look_at(*id, asked, &mut environment);
                    again |= sight == Sight::Ended;
                    sight == Sight::Between && start.elapsed() < PATIENCE
                });
            }
            if !again || start.elapsed() >= PATIENCE {
                return true;
            }
        }
    }

    /// Looks at one process for all who ask.
    fn look_at(id: Pid, asked: &mut [(Question, Left)], environment: &mut Vec<u8>) -> Sight {
        let group = match group_of(id) {
            Ok(Some(group)) if id != rustix::process::getpid() => group,
            Ok(_) => return Sight::Hidden,
            Err(_) => return Sight::Ended,
        };
        let is_in = |known: &Known| known.group == Some(group);
        if asked.iter().any(|(question, _)| is_in(&question.known))
            && !Stat::read(id).is_some_and(|stat| stat.runs)
        {
            return Sight::Ended;
        }
        let sight = environment_of(id, environment);
        for (question, left) in asked {
            if is_in(&question.known) {
                *left = Left::Somebody;
            } else if sight == Sight::Seen && carries(environment, &question.known.mark) {
                *left = Left::Somebody;
                if let Some(signal) = question.signal {
                    send(id, &question.known.mark, signal);
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
    fn group_of(id: Pid) -> io::Result<Option<Pid>> {
        // SAFETY: it takes a number and gives a number. It is not rustix's because that takes no process
        // to be without a group.
        match unsafe { libc::getpgid(id.as_raw_pid()) } {
            -1 => Err(io::Error::last_os_error()),
            group => Ok(Pid::from_raw(group)),
        }
    }

    /// What was seen of the environment that a process was started with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Sight {
        /// All of it.
        Seen,
        /// It has none: it is executing a program or ending.
        Between,
        /// It is another user's process, or the kernel's, or keeps to itself.
        Hidden,
        /// It has ended, and nobody can say whose it was.
        Ended,
    }

    /// Reads the environment of a process.
    fn environment_of(id: Pid, environment: &mut Vec<u8>) -> Sight {
        // A process that executes a program after its file was opened and before it was read shows nothing,
        // though it has finished by then. One that shows nothing again and again was given nothing.
        for _ in 0..3 {
            environment.clear();
            let read = File::open(format!("/proc/{}/environ", id.as_raw_pid()))
                .and_then(|mut file| file.read_to_end(environment));
            match read {
                Ok(1..) => return Sight::Seen,
                Ok(0) => {}
                // So newer kernels say that there is none.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Sight::Ended,
                Err(_) => return Sight::Hidden,
            }
            match Stat::read(id) {
                Some(stat) if stat.between => return Sight::Between,
                Some(stat) if stat.runs => {}
                Some(_) | None => return Sight::Ended,
            }
        }
        Sight::Seen
    }

    fn carries(environment: &[u8], mark: &Mark) -> bool {
        memchr::memmem::find(environment, mark.own().as_bytes()).is_some()
    }

    /// Signals a process that carries the mark, and never another that has got its id since.
    fn send(id: Pid, mark: &Mark, signal: Signal) {
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) => {
                let mut environment = Vec::new();
                if environment_of(id, &mut environment) == Sight::Seen
                    && carries(&environment, mark)
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
    struct Stat {
        /// It has not ended.
        runs: bool,
        /// It is executing a program at this moment, or it is ending.
        between: bool,
    }

    impl Stat {
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
                runs,
                between: runs && flags & PF_KTHREAD == 0 && code_begins == 0,
            })
        }
    }
}
