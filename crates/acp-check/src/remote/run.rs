//! Runs checks of the remote transport.

use std::sync::Arc;

use super::client_harness::RemoteClientHarness;
use super::client_target::RemoteClientTarget;
use super::server_harness::ServerHarness;
use super::server_target::{OfferedTransports, RemoteServer};
use crate::check::{Check, CheckProcedure};
use crate::check_directory::CheckDirectory;
use crate::lanes::limit_time;
use crate::options::CheckOptions;
use crate::outcome::{CheckEvent, CheckOutcome, CheckRun};
use crate::runner::run_each;

/// Runs checks against a server, several at a time, and returns their outcomes in the order of `checks`. Calls `tell`
/// when a check starts, and with its outcome when it has ended.
pub async fn run_server_checks(
    server: RemoteServer,
    offered: OfferedTransports,
    checks: &[Check],
    options: CheckOptions,
    tell: impl Fn(CheckEvent<'_>),
) -> Vec<CheckOutcome> {
    let (server, options) = (Arc::new(server), Arc::new(options));
    let (jobs, stop) = (options.jobs, options.stop.clone());
    let run = move |check: Check| {
        let (server, options) = (Arc::clone(&server), Arc::clone(&options));
        run_server_check(check, server, offered, options)
    };
    run_each(checks, jobs, &stop, run, tell).await
}

async fn run_server_check(
    check: Check,
    server: Arc<RemoteServer>,
    offered: OfferedTransports,
    options: Arc<CheckOptions>,
) -> CheckRun {
    let CheckProcedure::Server(play) = check.procedure else {
        return CheckRun::broken("this check does not apply to servers");
    };
    let directory = match CheckDirectory::new() {
        Ok(directory) => directory,
        Err(e) => return CheckRun::broken(format!("cannot create a directory for the check: {e}")),
    };
    let limit = options.check_timeout;
    let mut harness = ServerHarness::new(server, offered, directory, options);
    let stopped = limit_time(limit, play(&mut harness)).await;
    CheckRun::new(stopped, harness.end().await)
}

/// Runs checks against a client of the remote transport, several at a time, and returns their outcomes in the order of
/// `checks`. Calls `tell` when a check starts, and with its outcome when it has ended.
pub async fn run_remote_client_checks(
    client: Arc<dyn RemoteClientTarget>,
    checks: &[Check],
    options: CheckOptions,
    tell: impl Fn(CheckEvent<'_>),
) -> Vec<CheckOutcome> {
    let options = Arc::new(options);
    let (jobs, stop) = (options.jobs, options.stop.clone());
    let run = move |check: Check| {
        let (client, options) = (Arc::clone(&client), Arc::clone(&options));
        run_client_check(check, client, options)
    };
    run_each(checks, jobs, &stop, run, tell).await
}

async fn run_client_check(
    check: Check,
    client: Arc<dyn RemoteClientTarget>,
    options: Arc<CheckOptions>,
) -> CheckRun {
    let CheckProcedure::RemoteClient(play) = check.procedure else {
        return CheckRun::broken("this check does not apply to remote clients");
    };
    let directory = match CheckDirectory::new() {
        Ok(directory) => directory,
        Err(e) => return CheckRun::broken(format!("cannot create a directory for the check: {e}")),
    };
    let limit = options.check_timeout;
    let mut harness = match RemoteClientHarness::new(client, directory, options).await {
        Ok(harness) => harness,
        Err(why) => return CheckRun::broken(why),
    };
    let stopped = limit_time(limit, play(&mut harness)).await;
    CheckRun::new(stopped, harness.end().await)
}
