//! `acp trace`: records the messages between a client and an agent, and evaluates traces.

mod html;
mod lint;
mod record;
mod replay;
mod show;

use crate::args::trace::{TraceArgs, TraceSubcommand};
use crate::exit::CommandExit;

pub(crate) async fn trace(args: TraceArgs) -> CommandExit {
    match args.command {
        Some(TraceSubcommand::Show(args)) => show::show(&args).await,
        Some(TraceSubcommand::Lint(args)) => lint::lint(&args),
        Some(TraceSubcommand::Html(args)) => html::html(&args),
        Some(TraceSubcommand::Replay(args)) => replay::replay(&args).await,
        None => record::record(args.record).await,
    }
}
