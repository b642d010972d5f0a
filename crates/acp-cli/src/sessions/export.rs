//! `acp sessions export`: a session as Markdown.

use std::io::Write;
use std::path::Path;

use acp::client::{AgentConnection, SessionSetup};
use acp_config::SessionNames;

use crate::args::sessions::ExportSessionArgs;
use crate::args::shared::directory;
use crate::exit::Exit;
use crate::login;
use crate::screen::{Screen, print};
use crate::start::{Failure, Target, gone};
use crate::visit::visit;

pub(super) async fn export(args: ExportSessionArgs) -> Result<(), Exit> {
    let cwd = directory(&args.cwd)?;
    let agent = args.which.choose(&cwd)?;
    let named = SessionNames::of(agent.key(), &cwd).find(&args.session)?;
    let id = named.map_or_else(|| args.session.clone(), |named| named.id);
    if let Some(file) = &args.out
        && file.symlink_metadata().is_ok()
    {
        return Err(there_is(file));
    }
    let target = Target {
        agent: &agent,
        cwd: &cwd,
    };
    let work = async |connection: &AgentConnection, screen: &Screen| {
        if let Some(note) = &agent.note {
            screen.note(note);
        }
        if !connection.capabilities().load_session {
            let message = format!(
                "{} does not show what was said before (it does not offer loadSession), so that its sessions cannot be exported",
                agent.title()
            );
            return Err(Exit::usage(message).into());
        }
        let setup = SessionSetup::new(&cwd);
        let session = match connection.load_session(id.as_str(), setup).await {
            Err(error) if error.is_auth_required() => {
                return Err(login::needed(&target, connection, &error).into());
            }
            Err(error) if gone(&error) => {
                let message = format!("{} has no session {id}", agent.title());
                return Err(Exit::failed(message).into());
            }
            loaded => loaded?,
        };
        let text = session.thread().read(acp_tui::export::markdown);
        Ok::<String, Failure>(text)
    };
    let text = visit(target, work).await?;
    let Some(file) = &args.out else {
        return match print(text.as_bytes()) {
            true => Ok(()),
            false => Err(Exit::UNREAD),
        };
    };
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => there_is(file),
        _ => Exit::failed(format!("--out {}: {e}", file.display())),
    };
    let mut created = std::fs::File::create_new(file).map_err(failed)?;
    created.write_all(text.as_bytes()).map_err(failed)
}

fn there_is(file: &Path) -> Exit {
    Exit::usage(format!(
        "--out {}: it is there already, and is not written over",
        file.display()
    ))
}
