//! Manages agents and their sessions: starts agents, handles their requests and describes their failures.

mod client;
mod failure;
mod question_queue;
mod running_agent;

pub(crate) use client::ChatNotes;
#[cfg(test)]
pub(crate) use client::ChatPrompter;
pub(crate) use failure::{AgentExit, AgentFailure, Remedy, output_tail};
pub(crate) use question_queue::{ChatAnswer, ChatQuestion, OpenQuestion, QuestionQueue};
pub(crate) use running_agent::{
    ChatEnvironment, RunningAgent, SHUTDOWN_GRACE_PERIOD, connect, discard_session, spawn,
};
