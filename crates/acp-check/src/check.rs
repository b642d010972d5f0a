//! Defines a check: one requirement, and the code that tests it.

use std::fmt;
use std::pin::Pin;

use acp_rules::schema::SchemaVersion;
use acp_rules::{RequirementLevel, Side};

use super::checked_shape::CheckedShape;
use super::verdict::CheckStop;
use crate::agent_harness::AgentHarness;
use crate::client_harness::ClientHarness;
use crate::remote::client_harness::RemoteClientHarness;
use crate::remote::server_harness::ServerHarness;

/// How a check is carried out.
#[derive(Clone, Copy)]
pub enum CheckProcedure {
    /// Acts as the client to test an agent.
    Agent(for<'a> fn(&'a mut AgentHarness) -> CheckFuture<'a>),
    /// Acts as the agent to test a client.
    Client(for<'a> fn(&'a mut ClientHarness) -> CheckFuture<'a>),
    /// Acts as the client to test a server of the remote transport.
    Server(for<'a> fn(&'a mut ServerHarness) -> CheckFuture<'a>),
    /// Acts as the server to test a client of the remote transport.
    RemoteClient(for<'a> fn(&'a mut RemoteClientHarness) -> CheckFuture<'a>),
    /// Validates against the schema every message of this shape that the program sent in other checks.
    Shape(CheckedShape),
    /// Tests whether the program followed the protocol rules in all other checks.
    Rules,
}

/// Whether a check of an agent may use an agent that has run other checks before.
///
/// Real agents take seconds to start. A check may share an agent if it changes nothing that outlives it: it uses sessions
/// of its own, or sends only what an agent must refuse or ignore. If a shared agent fails a check, the check is repeated
/// with a new one. A wrong pass is not repeated, so when in doubt, a check needs a new agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessUse {
    /// The check may use an agent that has run other checks.
    Shared,
    /// Like `Shared`, but the check sends what is invalid or unknown, which may confuse an agent. So it runs after the
    /// checks that are `Shared`.
    SharedLast,
    /// The check needs an agent of its own, for this reason. The reason is empty for checks of clients and servers,
    /// which always start the program.
    Fresh(&'static str),
}

impl ProcessUse {
    /// Returns `true` if the check may use an agent that has run other checks.
    #[must_use]
    pub fn may_share(self) -> bool {
        matches!(self, Self::Shared | Self::SharedLast)
    }
}

/// The future of a running check. It resolves to an error if the check stops before its end.
pub type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<(), CheckStop>> + Send + 'a>>;

/// One requirement of the specification, and the code that tests it.
#[derive(Clone, Copy)]
pub struct Check {
    /// The protocol version that the requirement belongs to. For the remote transport, the version that the check uses
    /// over it.
    pub version: SchemaVersion,
    /// The side that must meet the requirement.
    pub side: Side,
    /// The specification page with the requirement, as it appears in the URL, such as `prompt-turn`.
    pub page: &'static str,
    /// The check's number on the page. It never changes, because baselines refer to it. Zero for shapes, which are
    /// identified by name.
    pub number: u16,
    /// Whether the requirement is a MUST, a SHOULD or a MAY.
    pub level: RequirementLevel,
    /// The requirement, as a sentence. For shapes, [`sentence`](Self::sentence) returns a more specific one.
    pub requirement: &'static str,
    /// Whether the check may use an agent that has run other checks before.
    pub process_use: ProcessUse,
    /// The capability of an agent that the check needs, such as `auth/status`. Without it, the check is skipped.
    pub required_capability: Option<&'static str>,
    /// The code that tests the requirement.
    pub procedure: CheckProcedure,
}

impl Check {
    /// Returns the requirement as a sentence, which for a shape includes the shape's name.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.procedure {
            CheckProcedure::Shape(CheckedShape {
                shape,
                variant: Some(variant),
            }) => format!("Every `{variant}` (`{shape}`) matches the schema."),
            CheckProcedure::Shape(CheckedShape { shape, .. })
                if !matches!(shape, "JSON-RPC" | "Error") =>
            {
                format!("Every `{shape}` matches the schema.")
            }
            _ => self.requirement.to_owned(),
        }
    }

    /// Returns the id of the check, such as `v1/initialization/3` or `remote/streams/3`. For a shape, it is
    /// `v1/schema/PromptResponse` or `v1/schema/SessionUpdate.plan`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.page_id(), self.name())
    }

    /// Returns the start of the id: the version and the page or, for the remote transport, `remote` and the page.
    #[must_use]
    pub fn page_id(&self) -> String {
        if self.is_remote() {
            format!("remote/{}", self.page)
        } else {
            format!("{}/{}", self.version, self.page)
        }
    }

    /// Returns `true` if the check has no code of its own, because it judges the messages of other checks.
    #[must_use]
    pub fn judges_others(&self) -> bool {
        matches!(
            self.procedure,
            CheckProcedure::Shape(_) | CheckProcedure::Rules
        )
    }

    /// Returns `true` for a requirement of the remote transport.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(
            self.procedure,
            CheckProcedure::Server(_) | CheckProcedure::RemoteClient(_)
        )
    }

    /// Returns the URL of the page.
    #[must_use]
    pub fn page_url(&self) -> String {
        if self.is_remote() {
            return "https://agentclientprotocol.com/rfds/streamable-http-websocket-transport"
                .to_owned();
        }
        let base = "https://agentclientprotocol.com/protocol";
        // Checks without a page of their own.
        let page = match self.page {
            "transport" => "transports",
            other => other,
        };
        match self.version {
            SchemaVersion::V1 => format!("{base}/{page}"),
            SchemaVersion::V2 => format!("{base}/v2/{page}"),
        }
    }

    /// Returns the last part of the id: the number, or the name of the shape.
    #[must_use]
    pub fn name(&self) -> String {
        match self.procedure {
            CheckProcedure::Shape(CheckedShape {
                shape,
                variant: Some(variant),
            }) => format!("{shape}.{variant}"),
            CheckProcedure::Shape(CheckedShape { shape, .. }) => shape.to_owned(),
            _ => self.number.to_string(),
        }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("id", &self.id())
            .field("side", &self.side)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

/// Defines a page's checks as the constant `CHECKS`, each with its number, level, requirement and function. For a page
/// that is the same in both versions, defines `V1` and `V2` instead.
///
/// After the function, a check of an agent says whether it may share the agent with other checks (`shared`) or needs
/// one of its own (`fresh`, with the reason). `shared_last` is for a check that sends what is invalid. A `fresh` after the
/// name of the page applies to all checks that do not say it. `requires` after that names the capability that all checks
/// of the page need.
macro_rules! checks {
    (V1 V2 $side:ident $page:literal $( fresh $reason:literal )? $( requires $capability:literal )?; $( $checks:tt )+) => {
        pub(super) const V1: &[$crate::check::Check] =
            $crate::check::checks!(@list V1 $side $page ($( $reason )?) [$( $capability )?]; $( $checks )+);
        pub(super) const V2: &[$crate::check::Check] =
            $crate::check::checks!(@list V2 $side $page ($( $reason )?) [$( $capability )?]; $( $checks )+);
    };
    (@list $version:ident $side:ident $page:literal $default:tt $requires:tt; $( $number:literal $level:ident $requirement:literal => $procedure:ident $( , $use:ident $( $reason:literal )? )?; )+) => {
        &[$(
            $crate::check::Check {
                version: ::acp_rules::schema::SchemaVersion::$version,
                side: ::acp_rules::Side::$side,
                page: $page,
                number: $number,
                level: ::acp_rules::RequirementLevel::$level,
                requirement: $requirement,
                process_use: $crate::check::process_use!($default $( $use $( $reason )? )?),
                required_capability: $crate::check::required_capability!($requires),
                procedure: $crate::check::CheckProcedure::$side(|harness| Box::pin($procedure(harness))),
            },
        )+]
    };
    ($version:ident $side:ident $page:literal $( fresh $reason:literal )?; $( $checks:tt )+) => {
        pub(super) const CHECKS: &[$crate::check::Check] =
            $crate::check::checks!(@list $version $side $page ($( $reason )?) []; $( $checks )+);
    };
}
pub(super) use checks;

/// Expands to the capability in brackets, if there is one.
macro_rules! required_capability {
    ([]) => {
        None
    };
    ([$capability:literal]) => {
        Some($capability)
    };
}
pub(super) use required_capability;

/// Expands to the [`ProcessUse`] of a check. The reason in parentheses is that of its page.
macro_rules! process_use {
    ($default:tt shared) => {
        $crate::check::ProcessUse::Shared
    };
    ($default:tt shared_last) => {
        $crate::check::ProcessUse::SharedLast
    };
    ($default:tt fresh $reason:literal) => {
        $crate::check::ProcessUse::Fresh($reason)
    };
    (($reason:literal)) => {
        $crate::check::ProcessUse::Fresh($reason)
    };
    (()) => {
        $crate::check::ProcessUse::Fresh("")
    };
}
pub(super) use process_use;

/// Defines the checks of one part of the remote transport, as the constant `CHECKS`.
macro_rules! remote_checks {
    (Server $page:literal; $( $checks:tt )+) => {
        pub(super) const CHECKS: &[$crate::check::Check] =
            $crate::check::remote_checks!(@list Server Agent $page; $( $checks )+);
    };
    (RemoteClient $page:literal; $( $checks:tt )+) => {
        pub(super) const CHECKS: &[$crate::check::Check] =
            $crate::check::remote_checks!(@list RemoteClient Client $page; $( $checks )+);
    };
    (@list $procedure:ident $side:ident $page:literal; $( $number:literal $level:ident $requirement:literal => $play:ident; )+) => {
        &[$(
            $crate::check::Check {
                version: ::acp_rules::schema::SchemaVersion::V1,
                side: ::acp_rules::Side::$side,
                page: $page,
                number: $number,
                level: ::acp_rules::RequirementLevel::$level,
                requirement: $requirement,
                process_use: $crate::check::ProcessUse::Fresh(""),
                required_capability: None,
                procedure: $crate::check::CheckProcedure::$procedure(|harness| Box::pin($play(harness))),
            },
        )+]
    };
}
pub(super) use remote_checks;
