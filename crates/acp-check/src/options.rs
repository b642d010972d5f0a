//! How checks are carried out, and what a program is told to do in them.

use std::collections::HashMap;
use std::time::Duration;

/// What the agent can be asked to do; the texts for it are in [`CheckOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentTask {
    /// Anything that it answers in words.
    Answer,
    /// Reading `notes.txt`.
    Read,
    /// Changing `notes.txt`: "beta" is to become "delta".
    Edit,
    /// Running `echo checked`.
    Run,
    /// Something that takes so long that it can be cancelled.
    Long,
    /// Something for which it makes a plan.
    Plan,
    /// Keeping the number 7351 in mind.
    Remember,
    /// Saying that number.
    Recall,
    /// Asking the person something by an elicitation.
    Ask,
    /// Having a subagent do something.
    Delegate,
}

/// How checks are carried out.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// How long something that must happen may take.
    pub patience: Duration,
    /// How long a whole turn may take, which a model decides.
    pub turn_patience: Duration,
    /// How long one check may take in all.
    pub limit: Duration,
    /// How many checks are carried out at once.
    pub jobs: usize,
    /// The method of logging in, where the agent wants one.
    pub login: Option<String>,
    /// What is sent so that the agent does a task, where it is not the usual text.
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
    /// What is sent so that the agent does a task.
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
            AgentTask::Ask => "Ask me which colour I like, by the tool for asking if you have one.",
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
