//! The official TypeScript SDK and our library as each other's peers, in separate processes.
//!
//! The programs on the official SDK are in `interop/typescript`, and are installed when a test first needs them.
//! Without node, the tests are skipped with a message.

mod agent;
mod client;
mod examples;
mod run;
mod version2;

use crate::common::typescript::TypeScriptPrograms;
use crate::common::{ClientOutput, InteropClient, InteropProject};
use acp::client::AgentConnection;
use acp_host::AgentProcess;

const OUR_AGENT: &str = env!("CARGO_BIN_EXE_our-agent");

/// A project to work in, with the official client and agent.
struct TypeScriptFixture {
    project: InteropProject,
    client: String,
    agent: String,
}

impl TypeScriptFixture {
    /// Creates the project. Returns `None` if the programs cannot be run.
    fn new() -> Option<Self> {
        let programs = TypeScriptPrograms::find_installed()?;
        Some(Self {
            project: InteropProject::new(),
            client: programs.program("official-client.mjs"),
            agent: programs.program("official-agent.mjs"),
        })
    }

    /// Makes the official client run a turn.
    async fn run_client(&self, args: &[&str], agent: &[&str]) -> ClientOutput {
        let client = ["node", &self.client];
        self.project.run_client(&client, args, agent).await
    }

    /// Returns the command of the official agent.
    fn agent_command<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["node", &*self.agent], args].concat()
    }

    /// Starts the official agent and connects to it.
    async fn start(
        &self,
        person: &InteropClient,
        args: &[&str],
    ) -> (AgentConnection, AgentProcess) {
        person.start(&self.project, &self.agent_command(args)).await
    }
}
