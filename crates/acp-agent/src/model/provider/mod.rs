//! Language models that are served by providers and by compatible servers.
//!
//! There is one file for each wire format. The other files decide what each failure means, which requests are retried,
//! what a round costs, and how a session continues with another model.

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
