//! `acp sessions watch`: shows what other clients do in a session.

use acp::ThreadHandle;
use acp::client::{AgentConnection, ClientSession};

use super::live::live_server;
use super::loading::load_session;
use super::watch_json::JsonWatch;
use crate::agent_session::with_agent;
use crate::args::run::RunFormat;
use crate::args::sessions::WatchSessionArgs;
use crate::args::shared::{ListFormat, absolute_directory};
use crate::exit::CommandExit;
use crate::run::Renderer;
use crate::screen::TerminalScreen;
use crate::start::{StartFailure, StartTarget};

pub(super) async fn watch_session(args: WatchSessionArgs) -> Result<(), CommandExit> {
    let since = args.since.as_deref().map(|text| {
        let invalid = |_| CommandExit::usage(format!("--since {text}: invalid cursor"));
        text.parse().map_err(invalid)
    });
    let since = since.transpose()?;
    if since.is_some() && args.format == ListFormat::Text {
        return Err(CommandExit::usage("--since requires --format json"));
    }
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let live = live_server(&agent, &cwd)?;
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: live.as_ref(),
    };
    if args.format == ListFormat::Json {
        let watch = JsonWatch {
            target,
            name_or_id: &args.session,
            since,
        };
        if watch.since.is_some() && live.is_none() && agent.remote.is_none() {
            // The log of a session that is not live is gone.
            return Err(watch.invalid_cursor_exit());
        }
        return watch.run().await;
    }
    let work = async |connection: &AgentConnection, screen: &TerminalScreen| {
        if let Some(note) = &agent.note {
            screen.note(note);
        }
        let session = load_session(target, connection, &args.session, "watch").await?;
        show_until_closed(&session, screen).await
    };
    with_agent(target, work).await
}

/// Shows the session's thread as it grows, until the agent closes the connection.
async fn show_until_closed(
    session: &ClientSession,
    screen: &TerminalScreen,
) -> Result<(), StartFailure> {
    let mut renderer = Renderer::new(RunFormat::Text, screen.clone());
    renderer.show_prompts();
    let thread = session.thread().clone();
    let mut show = |thread: &ThreadHandle| thread.read(|thread| renderer.render(thread));
    let closed = session.agent().closed();
    tokio::pin!(closed);
    let mut seen = 0;
    loop {
        tokio::select! {
            biased;
            revision = thread.changed(seen) => {
                seen = revision;
                show(&thread);
                if screen.is_stdout_closed() {
                    // The reader has closed stdout, as `head` does.
                    return Err(CommandExit::STDOUT_CLOSED.into());
                }
            }
            reason = &mut closed => {
                show(&thread);
                return Err(acp::Error::Closed(reason).into());
            }
        }
    }
}
