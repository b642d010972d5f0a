//! `acp chat` on a terminal, with a long conversation: how soon a key is on the screen, and what it all takes.

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
pub(crate) use report::{ChatMetric, ChatReport, KeyLatency, claims, table};

/// How large the terminal is.
const SIZE: TerminalGrid = TerminalGrid {
    columns: 120,
    rows: 40,
};

/// How many items the conversation has.
const ITEMS: usize = 10_000;

/// How many chunks a second are much for a model: 40,000, of 51 bytes.
const STREAM: &str = "stream 40000";

/// What has the agent stream as fast as it can.
const FLOOD: &str = "flood";

/// What is measured, and where.
struct ChatBench<'a> {
    peers: &'a Peers,
    /// For what the programs keep.
    scratch: &'a Path,
    quick: bool,
    chat: ChatReport,
}

/// Does all of it once.
pub(crate) fn chat(peers: &Peers, scratch: &Path, quick: bool) -> Result<ChatReport, BenchError> {
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
        if self.quick { ITEMS / 100 } else { ITEMS }
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

    /// Starts `acp chat` with a session of the agent that is made for this.
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
        PtyScreen::start(&command, SIZE, false)
    }

    /// Waits until a session is there, which its title says; gives how much text it has.
    fn wait_loaded(&self, screen: &mut PtyScreen) -> Result<(Instant, f64), BenchError> {
        let is = |screen: &PtyScreen| screen.row(0).contains(" bytes");
        let at = match is(screen) {
            true => Instant::now(),
            false => screen.until("the whole session", is)?,
        };
        let title = screen.row(0);
        let words: Vec<&str> = title.split_whitespace().collect();
        let number = words
            .iter()
            .position(|word| *word == "bytes")
            .and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok());
        Ok((at, number.ok_or("the title does not say how much it is")?))
    }

    /// The least that a key can take.
    fn measure_floor(&mut self) -> Result<(), BenchError> {
        let echo = self.peers.echo();
        let mut screen = PtyScreen::start(&Command::new(echo), SIZE, true)?;
        screen.until("that it has begun", |_| true)?;
        let times = KeySequence::new(&mut screen, self.scaled_count(600)).echoed()?;
        self.add_latency(
            "the floor, which only writes what is typed",
            "a letter",
            times,
        );
        Ok(())
    }

    /// How soon it is there, with nothing to show, and what it takes then.
    fn measure_start(&mut self) -> Result<(), BenchError> {
        let (mut drawn, mut typed) = (Vec::new(), Vec::new());
        for _ in 0..self.scaled_count(20) {
            let mut screen = self.start_chat("conversation-0")?;
            let first = screen.until("the first drawing", |_| true)?;
            drawn.push(first - screen.begun());
            screen.key(b"x")?;
            let shown = screen.until("what was typed", |screen| screen.row(37).contains('x'))?;
            typed.push(shown - screen.begun());
            self.wait_loaded(&mut screen)?;
        }
        self.add_metric("start to the first drawing", "ms", median(&mut drawn));
        self.add_metric("start to a letter on the screen", "ms", median(&mut typed));
        let mut screen = self.start_chat("conversation-0")?;
        self.wait_loaded(&mut screen)?;
        self.wait_quiet(&mut screen)?;
        let memory = machine::memory(screen.process())?.now;
        self.add_metric("resident, an empty session", "MB", to_megabytes(memory));
        Ok(())
    }

    /// The long conversation: at rest, and while an answer comes.
    fn measure_conversation(&mut self) -> Result<(), BenchError> {
        let items = self.item_count();
        let mut screen = self.start_chat(&format!("conversation-{items}"))?;
        let (at, bytes) = self.wait_loaded(&mut screen)?;
        let took = at - screen.begun();
        self.add_metric("text of the conversation", "MB", bytes / 1e6);
        self.add_metric(
            "start to its end on the screen",
            "ms",
            took.as_secs_f64() * 1e3,
        );
        self.wait_quiet(&mut screen)?;
        let memory = machine::memory(screen.process())?.now;
        self.add_metric(
            "resident, the conversation loaded",
            "MB",
            to_megabytes(memory),
        );

        let rest = "10,000 items, at rest";
        let (many, few) = (self.scaled_count(600), self.scaled_count(300));
        let times = KeySequence::new(&mut screen, many).typed()?;
        self.add_latency(rest, "a letter", times);
        let times = KeySequence::new(&mut screen, many).paged(PageTarget::Unseen)?;
        self.add_latency(rest, "a page up or down", times);
        let times = KeySequence::new(&mut screen, few).chosen()?;
        self.add_latency(rest, "another item chosen", times);
        let times = KeySequence::new(&mut screen, few).toggled()?;
        self.add_latency(rest, "an item opened or folded", times);
        let times = KeySequence::new(&mut screen, self.scaled_count(100)).resized(SIZE)?;
        self.add_latency(rest, "another size of the terminal", times);
        let memory = machine::memory(screen.process())?.now;
        self.add_metric("resident, all of it looked at", "MB", to_megabytes(memory));
        self.measure_idle(
            &mut screen,
            "CPU time of 10 s without a key",
            "wake-ups in them",
        )?;

        // A second tab in front of it.
        screen.key(b"\x14")?;
        screen.until("another tab", |screen| screen.row(0).contains(" 2 "))?;
        self.measure_idle(
            &mut screen,
            "the same, in a tab behind",
            "wake-ups in them, in a tab behind",
        )?;
        screen.key(b"\x1b1")?;
        screen.until("the first tab", |screen| screen.row(0).contains("bytes"))?;

        let streaming = "while an answer comes, 40,000 chunks/s";
        self.send_task(&mut screen, STREAM)?;
        let times = KeySequence::new(&mut screen, few).typed()?;
        self.add_latency(streaming, "a letter", times);
        let times = KeySequence::new(&mut screen, few).paged(PageTarget::NearEnd)?;
        self.add_latency(streaming, "a page up or down", times);
        self.cancel(&mut screen)?;

        self.send_task(&mut screen, FLOOD)?;
        let times = KeySequence::new(&mut screen, few).typed()?;
        self.add_latency("while an answer comes as fast as it can", "a letter", times);
        self.cancel(&mut screen)?;
        let memory = machine::memory(screen.process())?.now;
        self.add_metric("resident, behind that", "MB", to_megabytes(memory));
        Ok(())
    }

    /// One message that is as long as the conversation.
    fn measure_message(&mut self) -> Result<(), BenchError> {
        let mut screen = self.start_chat("message")?;
        self.wait_loaded(&mut screen)?;
        let what = "one message of 5 MB";
        let times = KeySequence::new(&mut screen, self.scaled_count(300)).typed()?;
        self.add_latency(what, "a letter", times);
        self.wait_quiet(&mut screen)?;
        let times =
            KeySequence::new(&mut screen, self.scaled_count(300)).paged(PageTarget::Unseen)?;
        self.add_latency(what, "a page up or down", times);
        let times = KeySequence::new(&mut screen, self.scaled_count(50)).resized(SIZE)?;
        self.add_latency(what, "another size of the terminal", times);
        let memory = machine::memory(screen.process())?.now;
        self.add_metric("resident, one message of 5 MB", "MB", to_megabytes(memory));
        Ok(())
    }

    /// Has the agent stream, and waits until it does.
    fn send_task(&self, screen: &mut PtyScreen, task: &str) -> Result<(), BenchError> {
        screen.key(task.as_bytes())?;
        screen.until("the task", |screen| screen.row(37).contains(task))?;
        screen.key(b"\r")?;
        screen.until("that it works", |screen| {
            screen.row(35).contains("Esc: cancel")
        })?;
        Ok(())
    }

    /// Has it stop.
    fn cancel(&self, screen: &mut PtyScreen) -> Result<(), BenchError> {
        screen.key(b"\x1b")?;
        screen.until("that it has stopped", |screen| {
            screen.row(35).contains("cancelled")
        })?;
        self.wait_quiet(screen)
    }

    /// Waits until nothing is printed any more.
    fn wait_quiet(&self, screen: &mut PtyScreen) -> Result<(), BenchError> {
        let quiet = Duration::from_millis(300);
        screen.until_quiet(quiet)
    }

    /// What is used while nothing happens.
    fn measure_idle(
        &mut self,
        screen: &mut PtyScreen,
        cpu: &'static str,
        woken: &'static str,
    ) -> Result<(), BenchError> {
        self.wait_quiet(screen)?;
        let process = screen.process();
        let before = (system::ticks(process)?, system::wake_ups(process)?);
        screen.watch(self.idle_time())?;
        let after = (system::ticks(process)?, system::wake_ups(process)?);
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
