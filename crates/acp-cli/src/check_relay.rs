//! `acp check-relay`: the program that a client under test starts as its agent.

use acp_check::relay;

use crate::args::relays::CheckRelayArgs;
use crate::exit::CommandExit;

pub(crate) async fn run_check_relay(args: CheckRelayArgs) -> CommandExit {
    match relay::run_relay(&args.file).await {
        Ok(()) => CommandExit::SUCCESS,
        Err(error) => CommandExit::agent_failed(format!("connection to the check failed: {error}")),
    }
}
