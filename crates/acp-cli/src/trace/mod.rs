//! `acp trace`: what a client and an agent say to each other, recorded, and read again.

mod html;
mod lint;
mod record;
mod replay;
mod show;

use crate::args::trace::{TraceArgs, TraceCommand};
use crate::exit::Exit;

pub(crate) async fn trace(args: TraceArgs) -> Exit {
    match args.command {
        Some(TraceCommand::Show(args)) => show::show(&args).await,
        Some(TraceCommand::Lint(args)) => lint::lint(&args),
        Some(TraceCommand::Html(args)) => html::html(&args),
        Some(TraceCommand::Replay(args)) => replay::replay(&args).await,
        None => record::record(args.record).await,
    }
}
