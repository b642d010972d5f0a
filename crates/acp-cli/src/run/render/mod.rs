//! The output of `acp run`: shows the session's thread as it grows.

mod placeholder;
mod question;
mod text;
mod tool_call;

use std::time::Duration;

use acp::Thread;
use acp::thread::ItemKind;

pub(crate) use self::question::render_question;
use self::text::TextRenderer;
use crate::args::run::RunFormat;
use crate::screen::TerminalScreen;

/// Shows a thread as it grows. Only ever appends output, so that it can be piped and logged.
pub(crate) struct Renderer {
    format: RunFormat,
    screen: TerminalScreen,
    text: TextRenderer,
}

impl Renderer {
    pub(crate) fn new(format: RunFormat, screen: TerminalScreen) -> Self {
        Self {
            format,
            screen,
            text: TextRenderer::default(),
        }
    }

    /// Also shows the prompts, which others have sent.
    pub(crate) fn show_prompts(&mut self) {
        self.text.shows_prompts = true;
    }

    pub(super) fn screen(&self) -> TerminalScreen {
        self.screen.clone()
    }

    /// Marks everything up to a revision of the thread as already shown.
    pub(super) fn skip_to(&mut self, revision: u64) {
        self.text.skip_to(revision);
    }

    /// Shows nothing from the item with the number `end` on, which belongs to another turn.
    pub(super) fn stop_at(&mut self, end: Option<usize>) {
        self.text.stop_at(end);
    }

    /// Shows everything that has changed.
    pub(crate) fn render(&mut self, thread: &Thread) {
        match self.format {
            // The messages are printed as they are received.
            RunFormat::Json | RunFormat::Trace => {}
            RunFormat::Quiet => self
                .screen
                .draw(|out| self.text.render_messages(thread, out)),
            RunFormat::Text => self.screen.draw(|out| self.text.render_thread(thread, out)),
        }
    }

    /// Shows a note about the run itself.
    pub(super) fn note(&self, note: &str) {
        self.screen.note(note);
    }

    /// Shows a hint about what to do next.
    pub(super) fn hint(&self, hint: &str) {
        self.screen.hint(hint);
    }

    /// Ends the last line of output.
    pub(super) fn finish(&self) {
        self.screen.finish();
    }

    /// Returns `true` if the reader of stdout has closed it.
    pub(super) fn is_output_closed(&self) -> bool {
        self.screen.is_stdout_closed()
    }

    /// Returns a timer for updating the progress line. It never fires if there is no progress line.
    pub(super) fn ticks(&self) -> RenderTicks {
        RenderTicks(
            self.screen
                .is_live()
                .then(|| tokio::time::interval(Duration::from_millis(120))),
        )
    }

    /// Updates the progress line.
    pub(super) fn tick(&self, doing: &str) {
        self.screen.tick(doing);
    }

    /// Updates the progress line to show the work in progress, such as a tool call.
    pub(super) fn tick_thread(&self, thread: &acp::ThreadHandle) {
        let doing = thread.read(|thread| {
            let open = thread
                .items()
                .iter()
                .rev()
                .find_map(|item| match &item.kind {
                    ItemKind::ToolCall(call) if !call.is_finished() => Some(call.title.clone()),
                    _ => None,
                });
            open.unwrap_or_else(|| "working".to_owned())
        });
        self.screen.tick(&doing);
    }
}

pub(super) struct RenderTicks(Option<tokio::time::Interval>);

impl RenderTicks {
    pub(super) async fn next(&mut self) {
        match &mut self.0 {
            Some(interval) => {
                interval.tick().await;
            }
            None => std::future::pending().await,
        }
    }
}
