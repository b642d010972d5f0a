//! `acp sessions export`: exports a session as Markdown.

use std::io::Write;
use std::path::Path;

use acp::client::AgentConnection;

use super::live::live_server;
use super::loading::load_session;
use crate::agent_session::with_agent;
use crate::args::sessions::ExportSessionArgs;
use crate::args::shared::absolute_directory;
use crate::exit::CommandExit;
use crate::screen::{TerminalScreen, print};
use crate::start::{StartFailure, StartTarget};

pub(super) async fn export_session(args: ExportSessionArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    if let Some(file) = &args.out
        && file.symlink_metadata().is_ok()
    {
        return Err(file_exists_exit(file));
    }
    let live = live_server(&agent, &cwd)?;
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: live.as_ref(),
    };
    let work = async |connection: &AgentConnection, screen: &TerminalScreen| {
        if let Some(note) = &agent.note {
            screen.note(note);
        }
        let session = load_session(target, connection, &args.session, "export").await?;
        let text = session.thread().read(acp_tui::export::render_markdown);
        Ok::<String, StartFailure>(text)
    };
    let text = with_agent(target, work).await?;
    let Some(file) = &args.out else {
        return match print(text.as_bytes()) {
            true => Ok(()),
            false => Err(CommandExit::STDOUT_CLOSED),
        };
    };
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => file_exists_exit(file),
        _ => CommandExit::failed(format!("--out {}: {e}", file.display())),
    };
    let mut created = std::fs::File::create_new(file).map_err(failed)?;
    created.write_all(text.as_bytes()).map_err(failed)
}

fn file_exists_exit(file: &Path) -> CommandExit {
    CommandExit::usage(format!("--out {}: file already exists", file.display()))
}
