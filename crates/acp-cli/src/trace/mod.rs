//! `acp trace`: what a client and an agent say to each other, recorded, and read again.

mod args;
mod record;

pub(crate) use args::TraceArgs;

use crate::exit::Exit;

pub(crate) async fn trace(args: TraceArgs) -> Exit {
    record::record(args.record).await
}
