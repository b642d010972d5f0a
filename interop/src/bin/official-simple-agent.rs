//! The official SDK's own example of an agent, as it is in its package: answers `initialize` alone.

include!(concat!(env!("OUT_DIR"), "/simple_agent.rs"));
