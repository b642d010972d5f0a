//! `acp trace`: records and analyzes the messages between a client and an agent.

mod html;
mod lint;
mod live;
mod record;
mod replay;
mod serve;
mod show;
mod words;

use crate::args::trace::{TraceArgs, TraceSubcommand};
use crate::exit::CommandExit;

pub(crate) async fn run_trace(args: TraceArgs) -> CommandExit {
    match args.command {
        Some(TraceSubcommand::Show(args)) => show::show_trace(&args).await,
        Some(TraceSubcommand::Lint(args)) => lint::lint_trace(&args),
        Some(TraceSubcommand::Html(args)) => html::write_html(&args),
        Some(TraceSubcommand::Replay(args)) => replay::replay_trace(&args).await,
        Some(TraceSubcommand::Live(args)) => live::show_live(*args).await,
        Some(TraceSubcommand::Serve(args)) => serve::serve_and_record(*args).await,
        None => record::record_trace(args.record).await,
    }
}
