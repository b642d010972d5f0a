//! `acp inspect`: shows what an agent is and what it can do.

mod capabilities;
mod connect;
mod report;
mod text;

use std::time::Duration;

use self::connect::Inspection;
use self::report::InspectReport;
use crate::args::inspect::InspectArgs;
use crate::args::shared::{ListFormat, absolute_directory};
use crate::exit::CommandExit;
use crate::screen::print;
use crate::signals::Signals;
use crate::start::StartTarget;

pub(crate) async fn run_inspect(args: InspectArgs) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    tokio::select! {
        inspected = inspect(&args) => inspected.unwrap_or_else(|exit| exit),
        _ = signals.next() => CommandExit::CANCELLED,
    }
}

async fn inspect(args: &InspectArgs) -> Result<CommandExit, CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    if let Some(note) = &agent.note {
        eprintln!("acp: {}", acp_host::terminal_text::clean_line(note));
    }
    let inspection = Inspection {
        target: StartTarget {
            agent: &agent,
            cwd: &cwd,
            live: None,
        },
        opens_session: !args.no_session,
        timeout: Duration::from_secs(args.timeout),
    };
    let report = inspect_versions(inspection, agent.protocol).await?;
    let shown = match args.format {
        ListFormat::Text => text::render_report(&report),
        ListFormat::Json => {
            let json = serde_json::to_string_pretty(&report);
            json.map_err(|e| CommandExit::failed(format!("cannot write the report as JSON: {e}")))?
                + "\n"
        }
    };
    if !print(shown.as_bytes()) {
        return Err(CommandExit::STDOUT_CLOSED);
    }
    let session = report.session.as_ref();
    match session.filter(|session| !session.is_open && !session.needs_login) {
        Some(session) => Err(CommandExit::failed(format!(
            "cannot open a session: {}",
            session.error.as_deref().unwrap_or_default()
        ))),
        None => Ok(CommandExit::SUCCESS),
    }
}

/// Inspects the agent in one version, and finds out whether it accepts the other one, too.
async fn inspect_versions(
    inspection: Inspection<'_>,
    wanted: u16,
) -> Result<InspectReport, CommandExit> {
    let only_version = Inspection {
        opens_session: false,
        ..inspection
    };
    let other = if wanted == 2 { 1 } else { 2 };
    let (inspected, probed) = tokio::join!(inspection.run(wanted), only_version.run(other));
    let probed = probed.ok().map(|report| report.protocol.inspected);
    let mut report = match (inspected, probed) {
        (Ok(report), _) => report,
        // The agent speaks only the other version.
        (Err(_), Some(spoken)) => inspection.run(spoken).await?,
        (Err(exit), None) => return Err(exit),
    };
    let accepted = &mut report.protocol.accepted;
    accepted.extend(probed);
    accepted.sort_unstable();
    accepted.dedup();
    Ok(report)
}
