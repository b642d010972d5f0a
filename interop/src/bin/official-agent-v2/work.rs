//! The prompt `work`: uses every feature once.

use std::process::Stdio;

use agent_client_protocol::v2::schema::{
    AvailableCommand, AvailableCommandsUpdate, Command, Content, ContentBlock, Cost, Diff,
    DiffChange, DiffFileType, MessageId, PlanEntry, PlanEntryPriority, PlanEntryStatus, PlanItems,
    PlanUpdate, PlanUpdateContent, RequestPermissionOutcome, SessionInfoUpdate, SessionUpdate,
    StopReason, Terminal, TerminalExitStatus, TerminalId, TerminalOutputChunk, TerminalUpdate,
    ToolCallContent, ToolCallContentChunk, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolKind, UsageUpdate,
};
use agent_client_protocol::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::turn::OfficialV2Turn;

impl OfficialV2Turn {
    pub(crate) async fn run_work(&mut self) -> Result<StopReason> {
        let path = self.cwd.join("note.txt");
        let thought = MessageId::new(self.new_id("message"));
        let thought = Self::chunk("First I look.", thought);
        self.update(SessionUpdate::AgentThoughtChunk(thought))?;
        for word in ["Reading ", "the ", "note."] {
            self.say(word)?;
        }
        let (done, doing, open) = (
            PlanEntryStatus::Completed,
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
        );
        self.send_plan([doing.clone(), open.clone(), open.clone()])?;
        let command = Command::new("work", "Do one of everything");
        self.update(SessionUpdate::AvailableCommandsUpdate(
            AvailableCommandsUpdate::new(vec![AvailableCommand::Command(command)]),
        ))?;

        let locations = vec![ToolCallLocation::new(path.as_path()).line(1)];
        let call = ToolCallUpdate::new("read").title("Read note.txt");
        self.change(
            call.kind(ToolKind::Read)
                .status(ToolCallStatus::InProgress)
                .locations(locations.clone()),
        )?;
        let old = std::fs::read_to_string(&path).map_err(Error::into_internal_error)?;
        // Send the content in pieces, and then the rest of the call.
        for line in old.split_inclusive('\n') {
            let content = Content::new(ContentBlock::from(line));
            let chunk = ToolCallContentChunk::new("read", ToolCallContent::Content(content.into()));
            self.update(SessionUpdate::ToolCallContentChunk(chunk))?;
        }
        self.change(
            ToolCallUpdate::new("read")
                .status(ToolCallStatus::Completed)
                .raw_output(json!({"bytes": old.len()})),
        )?;

        let loud = old.to_uppercase();
        let diff = self.diff(&old, &loud);
        let call = ToolCallUpdate::new("edit").title("Shout");
        self.change(
            call.kind(ToolKind::Edit)
                .status(ToolCallStatus::Pending)
                .locations(locations),
        )?;
        let asked = ToolCallUpdate::new("edit").content(vec![diff.clone()]);
        let answer = self.ask_permission("Shout?", asked).await?;
        let edit = |status| ToolCallUpdate::new("edit").status(status);
        if !matches!(answer, RequestPermissionOutcome::Selected(yes) if &*yes.option_id.0 == "yes")
        {
            self.change(edit(ToolCallStatus::Failed))?;
            self.say(" I was not allowed to.")?;
            return Ok(StopReason::EndTurn);
        }
        self.change(edit(ToolCallStatus::InProgress))?;
        std::fs::write(&path, loud).map_err(Error::into_internal_error)?;
        self.change(edit(ToolCallStatus::Completed).content(vec![diff]))?;
        self.send_plan([done.clone(), doing, open])?;

        let script = "cat note.txt; printf 'h\\303\\251llo\\n' >&2; exit 3";
        self.run_command("run", "Count", script, std::future::pending())
            .await?;
        self.run_command("kill", "Wait", "exec sleep 600", std::future::ready(()))
            .await?;
        self.send_plan([done.clone(), done.clone(), done])?;

        let usage = UsageUpdate::new(1200, 200_000).cost(Cost::new(0.25, "EUR"));
        self.update(SessionUpdate::UsageUpdate(usage))?;
        self.session(|session| "code".clone_into(&mut session.settings.mode));
        self.send_settings()?;
        let title = SessionInfoUpdate::new().title("A loud note");
        self.update(SessionUpdate::SessionInfoUpdate(title))?;
        // The next text is a separate message. Send it as a whole, and then append to it.
        self.say_whole("Do")?;
        self.say("ne.")?;
        Ok(StopReason::EndTurn)
    }

    /// Runs a command, and shows it with its output in a tool call. Ends it if the turn is cancelled.
    pub(crate) async fn run_command(
        &self,
        call: &'static str,
        title: &str,
        script: &str,
        stop: impl Future<Output = ()>,
    ) -> Result<TerminalExitStatus> {
        let terminal = TerminalId::new(self.new_id("terminal"));
        let shown = TerminalUpdate::new(terminal.clone()).command(script.to_owned());
        self.update(SessionUpdate::TerminalUpdate(shown.cwd(self.cwd.as_path())))?;
        self.change(
            ToolCallUpdate::new(call)
                .title(title)
                .kind(ToolKind::Execute)
                .status(ToolCallStatus::InProgress)
                .content(vec![ToolCallContent::Terminal(Terminal::new(
                    terminal.clone(),
                ))]),
        )?;
        let mut child = tokio::process::Command::new("sh")
            .args(["-c", script])
            .current_dir(&self.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::into_internal_error)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let reading = async {
            tokio::try_join!(
                self.send_output(&terminal, stdout),
                self.send_output(&terminal, stderr)
            )
        };
        let ending = async {
            tokio::select! {
                status = child.wait() => return status,
                () = stop => {}
            }
            child.kill().await?;
            child.wait().await
        };
        // The last output is sent before the exit status.
        let (status, read) = tokio::join!(ending, reading);
        read?;
        let status = status.map_err(Error::into_internal_error)?;
        let exit = match std::os::unix::process::ExitStatusExt::signal(&status) {
            Some(_) => TerminalExitStatus::new().signal("SIGKILL".to_owned()),
            None => TerminalExitStatus::new().exit_code(status.code().map(i64::from)),
        };
        let ended = match exit.signal {
            Some(_) => ToolCallStatus::Cancelled,
            None => ToolCallStatus::Completed,
        };
        let shown = TerminalUpdate::new(terminal).exit_status(exit.clone());
        self.update(SessionUpdate::TerminalUpdate(shown))?;
        self.change(ToolCallUpdate::new(call).status(ended))?;
        Ok(exit)
    }

    /// Shows the output of a command byte by byte, so that characters are split between chunks.
    async fn send_output(
        &self,
        terminal: &TerminalId,
        pipe: Option<impl AsyncRead + Unpin>,
    ) -> Result<()> {
        let Some(mut pipe) = pipe else { return Ok(()) };
        let mut buffer = [0; 4096];
        loop {
            let read = pipe.read(&mut buffer).await;
            let read = read.map_err(Error::into_internal_error)?;
            if read == 0 {
                return Ok(());
            }
            for byte in buffer.iter().take(read) {
                let chunk = TerminalOutputChunk::new(terminal.clone(), STANDARD.encode([*byte]));
                self.update(SessionUpdate::TerminalOutputChunk(chunk))?;
            }
        }
    }

    /// Returns the diff of a changed note, line by line, with absolute paths as the draft requires.
    fn diff(&self, old: &str, new: &str) -> ToolCallContent {
        let path = self.cwd.join("note.txt");
        let lines = |sign: char, text: &str| -> String {
            text.split_inclusive('\n')
                .map(|line| format!("{sign}{line}"))
                .collect()
        };
        let file = path.display();
        let patch = format!(
            "diff --git {file} {file}\n--- {file}\n+++ {file}\n@@ -1,{} +1,{} @@\n{}{}",
            old.lines().count(),
            new.lines().count(),
            lines('-', old),
            lines('+', new),
        );
        let change = DiffChange::modify(path).file_type(DiffFileType::Text);
        ToolCallContent::Diff(Diff::patch(patch, vec![change]))
    }

    fn send_plan(&self, statuses: [PlanEntryStatus; 3]) -> Result<()> {
        let steps = ["Look", "Shout", "Count"].into_iter().zip(statuses);
        let entries =
            steps.map(|(step, status)| PlanEntry::new(step, PlanEntryPriority::Medium, status));
        let items = PlanUpdateContent::Items(PlanItems::new("steps", entries.collect()));
        self.update(SessionUpdate::PlanUpdate(PlanUpdate::new(items)))
    }
}
