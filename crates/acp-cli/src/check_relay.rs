//! `acp check-relay`: what a client that is checked starts as its agent.

use acp_check::relay;

use crate::args::between::CheckRelayArgs;
use crate::exit::Exit;

pub(crate) async fn check_relay(args: CheckRelayArgs) -> Exit {
    match relay::relay(&args.file).await {
        Ok(()) => Exit::SUCCESS,
        Err(error) => Exit::broken(format!("cannot reach the check: {error}")),
    }
}
