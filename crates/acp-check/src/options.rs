//! How checks are run, and the tasks that they give the program under test.

use std::collections::HashMap;
use std::time::Duration;

/// A task for the agent. [`CheckOptions`] has the prompts.
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
    /// Do something that takes long enough to cancel it.
    Long,
    /// Do something that requires a plan, and report the plan.
    Plan,
    /// Remember the number 7351.
    Remember,
    /// Say the number that was to be remembered.
    Recall,
    /// Request input from the user with an elicitation.
    Ask,
    /// Delegate something to a subagent.
    Delegate,
}

/// Settings for running checks: timeouts, parallelism, and prompts.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The time limit for any one response or message.
    pub patience: Duration,
    /// The time limit for a whole turn, which depends on a model.
    pub turn_patience: Duration,
    /// The time limit for one check.
    pub limit: Duration,
    /// How many checks run at once.
    pub jobs: usize,
    /// The id of the auth method to log in with, if the agent requires a login.
    pub login: Option<String>,
    /// Prompts that replace the default ones, by task.
    pub texts: HashMap<AgentTask, String>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            turn_patience: Duration::from_secs(60),
            limit: Duration::from_secs(120),
            jobs: 4,
            login: None,
            texts: HashMap::new(),
        }
    }
}

impl CheckOptions {
    /// Returns the prompt text for a task.
    #[must_use]
    pub fn text_for(&self, task: AgentTask) -> String {
        let usual = match task {
            AgentTask::Answer => "Say hello in one short sentence. Do not use any tool.",
            AgentTask::Read => {
                "Read the file notes.txt of this project and say what its first line is."
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
                "Ask me which color I like, with your tool for asking questions if you have one."
            }
            AgentTask::Delegate => {
                "Have a subagent say hello, if you have subagents, and say when it has."
            }
            AgentTask::Recall => {
                "Which number was I asking you to remember? Answer with the number."
            }
        };
        let own = self.texts.get(&task).cloned();
        own.unwrap_or_else(|| usual.to_owned())
    }
}
