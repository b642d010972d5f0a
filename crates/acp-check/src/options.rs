//! The options for running checks, and the tasks that checks give to an agent.

use std::collections::HashMap;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// A task that a check gives to the agent. [`CheckOptions`] contains the prompts for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentTask {
    /// Respond with some text.
    Answer,
    /// Read `notes.txt`.
    Read,
    /// Edit `notes.txt`: replace "beta" with "delta".
    Edit,
    /// Run `echo checked`.
    Run,
    /// Do something slow enough to be cancelled.
    Long,
    /// Do something that requires a plan, and report the plan.
    Plan,
    /// Remember the number 7351.
    Remember,
    /// Repeat the number that the agent was asked to remember.
    Recall,
    /// Request input from the user with an elicitation.
    Ask,
    /// Delegate something to a subagent.
    Delegate,
}

/// Settings for running checks: timeouts, parallelism, and prompts.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The time limit for a single response or message.
    pub timeout: Duration,
    /// The time limit for a whole turn, during which a model may run.
    pub turn_timeout: Duration,
    /// The time limit for one check.
    pub check_timeout: Duration,
    /// The number of checks to run at the same time.
    pub jobs: usize,
    /// Whether a check that allows it may use an agent that has run other checks before.
    pub shares_agents: bool,
    /// The id of the auth method to log in with, if the agent requires a login.
    pub auth_method: Option<String>,
    /// Prompts that replace the default prompts, by task.
    pub prompts: HashMap<AgentTask, String>,
    /// Stops the checks when it is cancelled. Those that have not ended have no outcome then.
    pub stop: CancellationToken,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            turn_timeout: Duration::from_secs(60),
            check_timeout: Duration::from_secs(120),
            jobs: 4,
            shares_agents: true,
            auth_method: None,
            prompts: HashMap::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl CheckOptions {
    /// Returns the prompt for a task.
    #[must_use]
    pub fn prompt_for(&self, task: AgentTask) -> String {
        let usual = match task {
            AgentTask::Answer => "Say hello in one short sentence. Do not use any tools.",
            AgentTask::Read => {
                "Read the file notes.txt of this project and tell me what its first line is."
            }
            AgentTask::Edit => {
                "In the file notes.txt of this project, replace the word beta with delta."
            }
            AgentTask::Run => "Run the command `echo checked` and say what it printed.",
            AgentTask::Long => "Count from 1 to 500, with each number in words on its own line.",
            AgentTask::Plan => {
                "Make a plan of three steps for renaming notes.txt, and show it. Do not carry it out."
            }
            AgentTask::Remember => "Remember the number 7351. Answer with one word: noted.",
            AgentTask::Ask => {
                "Ask me which color I like, using your tool for asking questions if you have one."
            }
            AgentTask::Delegate => {
                "If you have subagents, have one of them say hello, and tell me when it is done."
            }
            AgentTask::Recall => "Which number did I ask you to remember? Answer with the number.",
        };
        let own = self.prompts.get(&task).cloned();
        own.unwrap_or_else(|| usual.to_owned())
    }
}
