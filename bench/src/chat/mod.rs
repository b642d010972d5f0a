//! `acp chat` on a terminal, with a long conversation: how soon a key is on the screen, and what it all takes.

mod keys;
mod pty;
mod report;
mod system;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::machine;
use crate::peers::Peers;
use keys::{Keys, Showing};
use pty::{Screen, Size};
pub(crate) use report::{Chat, Fact, Reactions, claims, table};

/// How large the terminal is.
const SIZE: Size = Size {
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
struct Bench<'a> {
    peers: &'a Peers,
    /// For what the programs keep.
    scratch: &'a Path,
    quick: bool,
    chat: Chat,
}

/// Does all of it once.
pub(crate) fn chat(peers: &Peers, scratch: &Path, quick: bool) -> Result<Chat, Failure> {
    fs::create_dir_all(scratch)?;
    let mut bench = Bench {
        peers,
        scratch,
        quick,
        chat: Chat::default(),
    };
    bench.floor()?;
    bench.start()?;
    bench.conversation()?;
    bench.message()?;
    Ok(bench.chat)
}

impl Bench<'_> {
    fn times(&self, times: usize) -> usize {
        if self.quick {
            times.div_ceil(50)
        } else {
            times
        }
    }

    fn items(&self) -> usize {
        if self.quick { ITEMS / 100 } else { ITEMS }
    }

    fn idle(&self) -> Duration {
        if self.quick {
            Duration::from_millis(500)
        } else {
            Duration::from_secs(10)
        }
    }

    fn react(&mut self, when: &'static str, what: &'static str, times: Vec<Duration>) {
        let reactions = Reactions::new(when, what, times);
        eprintln!("bench: {reactions}");
        self.chat.reactions.push(reactions);
    }

    fn fact(&mut self, what: &'static str, unit: &'static str, value: f64) {
        self.chat.facts.push(Fact::new(what, unit, value));
    }

    /// Starts `acp chat` with a session of the agent that is made for this.
    fn acp_chat(&self, session: &str) -> Result<Screen, Failure> {
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
        Screen::start(&command, SIZE, false)
    }

    /// Waits until a session is there, which its title says; gives how much text it has.
    fn loaded(&self, screen: &mut Screen) -> Result<(Instant, f64), Failure> {
        let is = |screen: &Screen| screen.row(0).contains(" bytes");
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
    fn floor(&mut self) -> Result<(), Failure> {
        let echo = self.peers.echo();
        let mut screen = Screen::start(&Command::new(echo), SIZE, true)?;
        screen.until("that it has begun", |_| true)?;
        let times = Keys::new(&mut screen, self.times(600)).echoed()?;
        self.react(
            "the floor, which only writes what is typed",
            "a letter",
            times,
        );
        Ok(())
    }

    /// How soon it is there, with nothing to show, and what it takes then.
    fn start(&mut self) -> Result<(), Failure> {
        let (mut drawn, mut typed) = (Vec::new(), Vec::new());
        for _ in 0..self.times(20) {
            let mut screen = self.acp_chat("conversation-0")?;
            let first = screen.until("the first drawing", |_| true)?;
            drawn.push(first - screen.begun());
            screen.key(b"x")?;
            let shown = screen.until("what was typed", |screen| screen.row(37).contains('x'))?;
            typed.push(shown - screen.begun());
            self.loaded(&mut screen)?;
        }
        self.fact("start to the first drawing", "ms", median(&mut drawn));
        self.fact("start to a letter on the screen", "ms", median(&mut typed));
        let mut screen = self.acp_chat("conversation-0")?;
        self.loaded(&mut screen)?;
        self.rest(&mut screen)?;
        let memory = machine::memory(screen.process())?.now;
        self.fact("resident, an empty session", "MB", mega(memory));
        Ok(())
    }

    /// The long conversation: at rest, and while an answer comes.
    fn conversation(&mut self) -> Result<(), Failure> {
        let items = self.items();
        let mut screen = self.acp_chat(&format!("conversation-{items}"))?;
        let (at, bytes) = self.loaded(&mut screen)?;
        let took = at - screen.begun();
        self.fact("text of the conversation", "MB", bytes / 1e6);
        self.fact(
            "start to its end on the screen",
            "ms",
            took.as_secs_f64() * 1e3,
        );
        self.rest(&mut screen)?;
        let memory = machine::memory(screen.process())?.now;
        self.fact("resident, the conversation loaded", "MB", mega(memory));

        let rest = "10,000 items, at rest";
        let (many, few) = (self.times(600), self.times(300));
        let times = Keys::new(&mut screen, many).typed()?;
        self.react(rest, "a letter", times);
        let times = Keys::new(&mut screen, many).paged(Showing::New)?;
        self.react(rest, "a page up or down", times);
        let times = Keys::new(&mut screen, few).chosen()?;
        self.react(rest, "another item chosen", times);
        let times = Keys::new(&mut screen, few).toggled()?;
        self.react(rest, "an item opened or folded", times);
        let times = Keys::new(&mut screen, self.times(100)).resized(SIZE)?;
        self.react(rest, "another size of the terminal", times);
        let memory = machine::memory(screen.process())?.now;
        self.fact("resident, all of it looked at", "MB", mega(memory));
        self.idles(
            &mut screen,
            "CPU time of 10 s without a key",
            "wake-ups in them",
        )?;

        // A second tab in front of it.
        screen.key(b"\x14")?;
        screen.until("another tab", |screen| screen.row(0).contains(" 2 "))?;
        self.idles(
            &mut screen,
            "the same, in a tab behind",
            "wake-ups in them, in a tab behind",
        )?;
        screen.key(b"\x1b1")?;
        screen.until("the first tab", |screen| screen.row(0).contains("bytes"))?;

        let streaming = "while an answer comes, 40,000 chunks/s";
        self.say(&mut screen, STREAM)?;
        let times = Keys::new(&mut screen, few).typed()?;
        self.react(streaming, "a letter", times);
        let times = Keys::new(&mut screen, few).paged(Showing::Near)?;
        self.react(streaming, "a page up or down", times);
        self.cancel(&mut screen)?;

        self.say(&mut screen, FLOOD)?;
        let times = Keys::new(&mut screen, few).typed()?;
        self.react("while an answer comes as fast as it can", "a letter", times);
        self.cancel(&mut screen)?;
        let memory = machine::memory(screen.process())?.now;
        self.fact("resident, behind that", "MB", mega(memory));
        Ok(())
    }

    /// One message that is as long as the conversation.
    fn message(&mut self) -> Result<(), Failure> {
        let mut screen = self.acp_chat("message")?;
        self.loaded(&mut screen)?;
        let what = "one message of 5 MB";
        let times = Keys::new(&mut screen, self.times(300)).typed()?;
        self.react(what, "a letter", times);
        self.rest(&mut screen)?;
        let times = Keys::new(&mut screen, self.times(300)).paged(Showing::New)?;
        self.react(what, "a page up or down", times);
        let times = Keys::new(&mut screen, self.times(50)).resized(SIZE)?;
        self.react(what, "another size of the terminal", times);
        let memory = machine::memory(screen.process())?.now;
        self.fact("resident, one message of 5 MB", "MB", mega(memory));
        Ok(())
    }

    /// Has the agent stream, and waits until it does.
    fn say(&self, screen: &mut Screen, task: &str) -> Result<(), Failure> {
        screen.key(task.as_bytes())?;
        screen.until("the task", |screen| screen.row(37).contains(task))?;
        screen.key(b"\r")?;
        screen.until("that it works", |screen| {
            screen.row(35).contains("Esc cancels")
        })?;
        Ok(())
    }

    /// Has it stop.
    fn cancel(&self, screen: &mut Screen) -> Result<(), Failure> {
        screen.key(b"\x1b")?;
        screen.until("that it has stopped", |screen| {
            screen.row(35).contains("cancelled")
        })?;
        self.rest(screen)
    }

    /// Waits until nothing is printed any more.
    fn rest(&self, screen: &mut Screen) -> Result<(), Failure> {
        let quiet = Duration::from_millis(300);
        screen.until_quiet(quiet)
    }

    /// What is used while nothing happens.
    fn idles(
        &mut self,
        screen: &mut Screen,
        cpu: &'static str,
        woken: &'static str,
    ) -> Result<(), Failure> {
        self.rest(screen)?;
        let process = screen.process();
        let before = (system::ticks(process)?, system::wake_ups(process)?);
        screen.watch(self.idle())?;
        let after = (system::ticks(process)?, system::wake_ups(process)?);
        let (ticks, wake_ups) = (
            after.0.saturating_sub(before.0),
            after.1.saturating_sub(before.1),
        );
        self.fact(cpu, "ticks of 10 ms", ticks as f64);
        self.fact(woken, "", wake_ups as f64);
        Ok(())
    }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    median.as_secs_f64() * 1e3
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
