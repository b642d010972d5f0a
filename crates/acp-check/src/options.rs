//! How checks are run, and the tasks for the program under test.

use std::collections::HashMap;
use std::time::Duration;

/// A task for the agent. The prompts for it are in [`CheckOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentTask {
    /// Respond with any text.
    Answer,
    /// Read `notes.txt`.
    Read,
    /// Edit `notes.txt`: replace "beta" with "delta".
    Edit,
    /// Run `echo checked`.
    Run,
    /// Do something that takes long enough to cancel it.
    Long,
    /// Do something that requires a plan.
    Plan,
    /// Remember the number 7351.
    Remember,
    /// Say that number.
    Recall,
    /// Ask the user something with an elicitation.
    Ask,
    /// Have a subagent do something.
    Delegate,
}

/// How checks are run.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// How long to wait for something that must happen.
    pub patience: Duration,
    /// How long a whole turn may take, which depends on a model.
    pub turn_patience: Duration,
    /// How long one check may take in total.
    pub limit: Duration,
    /// How many checks run at once.
    pub jobs: usize,
    /// The auth method, if the agent requires a login.
    pub login: Option<String>,
    /// Prompts for tasks, where they differ from the default.
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
                "In the file notes.txt of this project, replace the word beta by delta."
            }
            AgentTask::Run => "Run the command `echo checked` and say what it printed.",
            AgentTask::Long => {
                "Count from 1 to 500, each number in words and on a line of its own."
            }
            AgentTask::Plan => {
                "Make a plan of three steps for renaming notes.txt, and show it. Do not carry it out."
            }
            AgentTask::Remember => "Remember the number 7351. Answer with one word: noted.",
            AgentTask::Ask => "Ask me which color I like, by the tool for asking if you have one.",
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
