//! What a check is.

use std::fmt;
use std::pin::Pin;

use acp_rules::schema::SchemaVersion;
use acp_rules::{RequirementLevel, Side};

use super::checked_shape::CheckedShape;
use super::verdict::CheckStop;
use crate::agent_harness::AgentHarness;
use crate::client_harness::ClientHarness;

/// What a check does, and with whom.
#[derive(Clone, Copy)]
pub enum CheckProcedure {
    /// It plays a client with an agent.
    Agent(for<'a> fn(&'a mut AgentHarness) -> CheckFuture<'a>),
    /// It plays an agent with a client.
    Client(for<'a> fn(&'a mut ClientHarness) -> CheckFuture<'a>),
    /// It looks at every message that the program sent in the other checks: at those with this shape.
    Shape(CheckedShape),
    /// It looks at what the program said in the other checks: at whether it kept to the rules of a conversation.
    Rules,
}

/// A check that is under way.
pub type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<(), CheckStop>> + Send + 'a>>;

/// One requirement of the specification, and how it is seen whether it is met.
#[derive(Clone, Copy)]
pub struct Check {
    /// The version whose requirement it is.
    pub version: SchemaVersion,
    /// Whose requirement it is.
    pub side: Side,
    /// The page of the specification, as its address has it, such as `prompt-turn`.
    pub page: &'static str,
    /// Its number on the page. It stays when others come or go: baselines name it. Zero for shapes, which go by their
    /// names.
    pub number: u16,
    /// How binding it is.
    pub level: RequirementLevel,
    /// What is required, in a sentence; [`sentence`](Self::sentence) is for reading.
    pub requirement: &'static str,
    /// What is done.
    pub play: CheckProcedure,
}

impl Check {
    /// What is required, in a sentence that names what it is about.
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

    /// The id: `v1/initialization/3`; of a shape `v1/schema/PromptResponse`, or `v1/schema/SessionUpdate.plan`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.version, self.page, self.name())
    }

    /// What it is called on its page: its number, or the shape it is about.
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

/// The checks of a page: number, level, requirement, and the function that plays it. `CHECKS` has them; where a page is
/// the same in both versions, `V1` and `V2` do.
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
