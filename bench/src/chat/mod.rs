//! Measures `acp chat` on a terminal with a long conversation: latency, CPU time and memory.

mod keys;
mod pty;
mod report;
mod system;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::BenchError;
use crate::machine;
use crate::peers::Peers;
use keys::{KeySequence, PageTarget};
use pty::{PtyScreen, TerminalGrid};
pub(crate) use report::{ChatMetric, ChatReport, KeyLatency, chat_claims, render_table};

/// The size of the terminal in the benchmark.
const TERMINAL_SIZE: TerminalGrid = TerminalGrid {
    columns: 120,
    rows: 40,
};

/// The number of items in the conversation.
const ITEM_COUNT: usize = 10_000;

/// The length of the single long message, in bytes.
const LONG_MESSAGE_BYTES: usize = 5_000_000;

/// The prompt for a stream of 40,000 chunks per second, of 51 bytes each. Models are much slower.
const STREAM_PROMPT: &str = "stream 40000";

/// The prompt for a stream at full speed.
const FLOOD_PROMPT: &str = "flood";

/// The benchmark of the chat.
struct ChatBench<'a> {
    peers: &'a Peers,
    /// The directory for temporary files of the programs.
    scratch: &'a Path,
    quick: bool,
    chat: ChatReport,
}

/// Runs the whole benchmark once.
pub(crate) fn run_chat_bench(
    peers: &Peers,
    scratch: &Path,
    quick: bool,
) -> Result<ChatReport, BenchError> {
    fs::create_dir_all(scratch)?;
    let mut bench = ChatBench {
        peers,
        scratch,
        quick,
        chat: ChatReport::default(),
    };
    bench.measure_floor()?;
    bench.measure_start()?;
    bench.measure_conversation()?;
    bench.measure_message()?;
    Ok(bench.chat)
}

impl ChatBench<'_> {
    fn scaled_count(&self, times: usize) -> usize {
        if self.quick {
            times.div_ceil(50)
        } else {
            times
        }
    }

    fn item_count(&self) -> usize {
        if self.quick {
            ITEM_COUNT / 100
        } else {
            ITEM_COUNT
        }
    }

    fn idle_time(&self) -> Duration {
        if self.quick {
            Duration::from_millis(500)
        } else {
            Duration::from_secs(10)
        }
    }

    fn add_latency(&mut self, when: &'static str, what: &'static str, times: Vec<Duration>) {
        let reactions = KeyLatency::new(when, what, times);
        eprintln!("bench: {reactions}");
        self.chat.reactions.push(reactions);
    }

    fn add_metric(&mut self, what: &'static str, unit: &'static str, value: f64) {
        self.chat.facts.push(ChatMetric::new(what, unit, value));
    }

    /// Starts `acp chat` and loads a session of the benchmark's agent.
    fn start_chat(&self, session: &str) -> Result<PtyScreen, BenchError> {
        let acp = self.peers.acp();
        let agent = self.peers.chat_agent();
        let mut command = Command::new(acp);
        command.args(["chat", "--resume", session, "--"]).arg(agent);
        for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
            command.env(variable, self.scratch);
        }
        command
            .current_dir(self.scratch)
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env_remove("NO_COLOR");
        PtyScreen::start(&command, TERMINAL_SIZE, false)
    }

    /// Waits until the session has loaded. Returns the time, and the amount of text that the session's title reports.
    fn wait_loaded(&self, screen: &mut PtyScreen) -> Result<(Instant, f64), BenchError> {
        let is = |screen: &PtyScreen| screen.row(0).contains(" bytes");
        let at = match is(screen) {
            true => Instant::now(),
            false => screen.wait_until("the whole session", is)?,
        };
        let title = screen.row(0);
        let words: Vec<&str> = title.split_whitespace().collect();
        let number = words
            .iter()
            .position(|word| *word == "bytes")
            .and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok());
        Ok((
            at,
            number.ok_or("the title does not contain the amount of text")?,
        ))
    }

    /// Measures the floor: the minimum time from a key to the screen.
    fn measure_floor(&mut self) -> Result<(), BenchError> {
        let echo = self.peers.echo();
        let mut screen = PtyScreen::start(&Command::new(echo), TERMINAL_SIZE, true)?;
        screen.wait_until("the first output", |_| true)?;
        let times = KeySequence::new(&mut screen, self.scaled_count(600)).measure_echo()?;
        self.add_latency("the floor, which only echoes keys", "a letter", times);
        Ok(())
    }

    /// Measures the start and the memory of an empty chat.
    fn measure_start(&mut self) -> Result<(), BenchError> {
        let (mut drawn, mut typed) = (Vec::new(), Vec::new());
        for _ in 0..self.scaled_count(20) {
            let mut screen = self.start_chat("conversation-0")?;
            let first = screen.wait_until("the first frame", |_| true)?;
            drawn.push(first - screen.started_at());
            screen.send_keys(b"x")?;
            let shown =
                screen.wait_until("the typed letter", |screen| screen.row(37).contains('x'))?;
            typed.push(shown - screen.started_at());
            self.wait_loaded(&mut screen)?;
        }
        self.add_metric("from start to the first frame", "ms", median(&mut drawn));
        self.add_metric(
            "from start to a letter on the screen",
            "ms",
            median(&mut typed),
        );
        let mut screen = self.start_chat("conversation-0")?;
        self.wait_loaded(&mut screen)?;
        self.wait_until_quiet(&mut screen)?;
        let memory = machine::process_memory(screen.process_id())?.now;
        self.add_metric(
            "resident memory, an empty session",
            "MB",
            to_megabytes(memory),
        );
        Ok(())
    }

    /// Measures the long conversation, at rest and while a response arrives.
    fn measure_conversation(&mut self) -> Result<(), BenchError> {
        let items = self.item_count();
        let mut screen = self.start_chat(&format!("conversation-{items}"))?;
        let (at, bytes) = self.wait_loaded(&mut screen)?;
        let took = at - screen.started_at();
        self.add_metric("text in the conversation", "MB", bytes / 1e6);
        self.add_metric(
            "from start to the end of the conversation on the screen",
            "ms",
            took.as_secs_f64() * 1e3,
        );
        self.wait_until_quiet(&mut screen)?;
        let memory = machine::process_memory(screen.process_id())?.now;
        self.add_metric(
            "resident memory, the conversation loaded",
            "MB",
            to_megabytes(memory),
        );

        let rest = "10,000 items, at rest";
        let (many, few) = (self.scaled_count(600), self.scaled_count(300));
        let times = KeySequence::new(&mut screen, many).measure_typing()?;
        self.add_latency(rest, "a letter", times);
        let times = KeySequence::new(&mut screen, many).measure_paging(PageTarget::Unseen)?;
        self.add_latency(rest, "a page up or down", times);
        let times = KeySequence::new(&mut screen, few).measure_choice()?;
        self.add_latency(rest, "another item selected", times);
        let times = KeySequence::new(&mut screen, few).measure_toggle()?;
        self.add_latency(rest, "an item expanded or collapsed", times);
        let times =
            KeySequence::new(&mut screen, self.scaled_count(100)).measure_resize(TERMINAL_SIZE)?;
        self.add_latency(rest, "the terminal resized", times);
        let memory = machine::process_memory(screen.process_id())?.now;
        self.add_metric(
            "resident memory, the whole conversation viewed",
            "MB",
            to_megabytes(memory),
        );
        self.measure_idle(
            &mut screen,
            "CPU time in 10 s without a key",
            "wake-ups in 10 s without a key",
        )?;

        // Open a second tab in front of the conversation.
        screen.send_keys(b"\x14")?;
        screen.wait_until("another tab", |screen| screen.row(0).contains(" 2 "))?;
        self.measure_idle(
            &mut screen,
            "CPU time in 10 s without a key, background tab",
            "wake-ups in 10 s without a key, background tab",
        )?;
        screen.send_keys(b"\x1b1")?;
        screen.wait_until("the first tab", |screen| screen.row(0).contains("bytes"))?;

        let streaming = "during a response of 40,000 chunks/s";
        self.send_task(&mut screen, STREAM_PROMPT)?;
        let times = KeySequence::new(&mut screen, few).measure_typing()?;
        self.add_latency(streaming, "a letter", times);
        let times = KeySequence::new(&mut screen, few).measure_paging(PageTarget::NearEnd)?;
        self.add_latency(streaming, "a page up or down", times);
        self.cancel(&mut screen)?;

        self.send_task(&mut screen, FLOOD_PROMPT)?;
        let times = KeySequence::new(&mut screen, few).measure_typing()?;
        self.add_latency("during a response at full speed", "a letter", times);
        self.cancel(&mut screen)?;
        let memory = machine::process_memory(screen.process_id())?.now;
        self.add_metric(
            "resident memory, after both responses",
            "MB",
            to_megabytes(memory),
        );
        Ok(())
    }

    /// Measures a single message that is as long as the conversation.
    fn measure_message(&mut self) -> Result<(), BenchError> {
        // In a debug build, the chat works on a message of this length for a minute.
        let bytes = match self.quick {
            true => LONG_MESSAGE_BYTES / 100,
            false => LONG_MESSAGE_BYTES,
        };
        let mut screen = self.start_chat(&format!("message-{bytes}"))?;
        self.wait_loaded(&mut screen)?;
        let what = "one message of 5 MB";
        let times = KeySequence::new(&mut screen, self.scaled_count(300)).measure_typing()?;
        self.add_latency(what, "a letter", times);
        self.wait_until_quiet(&mut screen)?;
        let times = KeySequence::new(&mut screen, self.scaled_count(300))
            .measure_paging(PageTarget::Unseen)?;
        self.add_latency(what, "a page up or down", times);
        let times =
            KeySequence::new(&mut screen, self.scaled_count(50)).measure_resize(TERMINAL_SIZE)?;
        self.add_latency(what, "the terminal resized", times);
        let memory = machine::process_memory(screen.process_id())?.now;
        self.add_metric(
            "resident memory, one message of 5 MB",
            "MB",
            to_megabytes(memory),
        );
        Ok(())
    }

    /// Makes the agent stream a response, and waits until it has started.
    fn send_task(&self, screen: &mut PtyScreen, task: &str) -> Result<(), BenchError> {
        screen.send_keys(task.as_bytes())?;
        screen.wait_until("the typed prompt", |screen| screen.row(37).contains(task))?;
        screen.send_keys(b"\r")?;
        screen.wait_until("a running turn", |screen| {
            screen.row(35).contains("Esc: cancel")
        })?;
        Ok(())
    }

    /// Cancels the turn, and waits until the agent has stopped.
    fn cancel(&self, screen: &mut PtyScreen) -> Result<(), BenchError> {
        screen.send_keys(b"\x1b")?;
        screen.wait_until("the end of the turn", |screen| {
            screen.row(35).contains("cancelled")
        })?;
        self.wait_until_quiet(screen)
    }

    /// Waits until the program prints nothing more.
    fn wait_until_quiet(&self, screen: &mut PtyScreen) -> Result<(), BenchError> {
        let quiet = Duration::from_millis(300);
        screen.wait_until_quiet(quiet)
    }

    /// Measures the CPU time and wake-ups of the idle chat, and adds them under these names.
    fn measure_idle(
        &mut self,
        screen: &mut PtyScreen,
        cpu: &'static str,
        woken: &'static str,
    ) -> Result<(), BenchError> {
        self.wait_until_quiet(screen)?;
        let process = screen.process_id();
        let before = (system::cpu_ticks(process)?, system::wakeup_count(process)?);
        screen.read_for(self.idle_time())?;
        let after = (system::cpu_ticks(process)?, system::wakeup_count(process)?);
        let (ticks, wake_ups) = (
            after.0.saturating_sub(before.0),
            after.1.saturating_sub(before.1),
        );
        self.add_metric(cpu, "ticks of 10 ms", ticks as f64);
        self.add_metric(woken, "", wake_ups as f64);
        Ok(())
    }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    median.as_secs_f64() * 1e3
}

fn to_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
