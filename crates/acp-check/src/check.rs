//! Checks: requirements, and the code that tests them.

use std::fmt;
use std::pin::Pin;

use acp_rules::schema::SchemaVersion;
use acp_rules::{RequirementLevel, Side};

use super::checked_shape::CheckedShape;
use super::verdict::CheckStop;
use crate::agent_harness::AgentHarness;
use crate::client_harness::ClientHarness;

/// What a check does, and against which side.
#[derive(Clone, Copy)]
pub enum CheckProcedure {
    /// Plays the client for an agent.
    Agent(for<'a> fn(&'a mut AgentHarness) -> CheckFuture<'a>),
    /// Plays the agent for a client.
    Client(for<'a> fn(&'a mut ClientHarness) -> CheckFuture<'a>),
    /// Inspects all messages with this shape that the program sent in the other checks.
    Shape(CheckedShape),
    /// Tests whether the program kept to the protocol rules in the other checks.
    Rules,
}

/// A running check.
pub type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<(), CheckStop>> + Send + 'a>>;

/// One requirement of the specification, and the code that tests it.
#[derive(Clone, Copy)]
pub struct Check {
    /// The version that has the requirement.
    pub version: SchemaVersion,
    /// The side that must meet it.
    pub side: Side,
    /// The page of the specification, as in its URL, such as `prompt-turn`.
    pub page: &'static str,
    /// The number on the page. It never changes, since baselines use it. Zero for shapes, which have names instead.
    pub number: u16,
    /// How binding it is.
    pub level: RequirementLevel,
    /// The requirement, as a sentence. For display, use [`sentence`](Self::sentence).
    pub requirement: &'static str,
    /// The code of the check.
    pub play: CheckProcedure,
}

impl Check {
    /// Returns the requirement as a sentence that names its subject.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.play {
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

    /// Returns the id: `v1/initialization/3`, or for a shape `v1/schema/PromptResponse` or
    /// `v1/schema/SessionUpdate.plan`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.version, self.page, self.name())
    }

    /// Returns the name on the page: the number, or the shape.
    #[must_use]
    pub fn name(&self) -> String {
        match self.play {
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

/// Defines the checks of a page: number, level, requirement, and function. They are in `CHECKS`, or in `V1` and `V2`
/// where a page is the same in both versions.
macro_rules! checks {
    (V1 V2 $side:ident $page:literal; $( $checks:tt )+) => {
        pub(super) const V1: &[$crate::check::Check] = $crate::check::checks!(@list V1 $side $page; $( $checks )+);
        pub(super) const V2: &[$crate::check::Check] = $crate::check::checks!(@list V2 $side $page; $( $checks )+);
    };
    (@list $version:ident $side:ident $page:literal; $( $number:literal $level:ident $requirement:literal => $play:ident; )+) => {
        &[$(
            $crate::check::Check {
                version: ::acp_rules::schema::SchemaVersion::$version,
                side: ::acp_rules::Side::$side,
                page: $page,
                number: $number,
                level: ::acp_rules::RequirementLevel::$level,
                requirement: $requirement,
                play: $crate::check::CheckProcedure::$side(|harness| Box::pin($play(harness))),
            },
        )+]
    };
    ($version:ident $side:ident $page:literal; $( $checks:tt )+) => {
        pub(super) const CHECKS: &[$crate::check::Check] =
            $crate::check::checks!(@list $version $side $page; $( $checks )+);
    };
}
pub(super) use checks;
