//! Language models of providers, and of all who speak as one of them.
//!
//! How the providers want to be talked to is in a file for each wire format. The rest is what a person notices: what
//! each failure means, which are worth another try, what a round cost, and that a session can go on with another model.

mod anthropic_messages;
pub(crate) mod backoff;
mod calls;
pub(crate) mod catalogue;
pub(crate) mod config;
mod convert;
mod decode;
mod error_report;
mod exchange;
mod failure;
mod formats;
mod gemini;
mod http;
mod model_list;
pub(crate) mod models;
pub(crate) mod name;
mod openai_chat;
mod openai_responses;
mod prompt;
mod request;
pub(crate) mod secret;
mod served_model;
mod stream;
pub(crate) mod wire_format;
