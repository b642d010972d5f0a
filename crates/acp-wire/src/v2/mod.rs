//! Protocol version 2, following the draft of August 2026 with later additions. There is one file per topic of the
//! specification.
//!
//! Types that do not differ from version 1 are shared with it. Additions to the published draft are marked. A peer that
//! implements only the published draft does not send them, and ignores them.

mod authentication;
mod background;
mod command;
mod config_option;
mod diff;
mod initialize;
mod mcp_server;
mod message;
mod permission;
mod plan;
mod prompt;
mod session;
mod session_status;
mod session_update;
mod state;
mod terminal;
mod tool_call;

pub use crate::methods::v2::*;
pub use crate::session_capabilities::v2::*;
pub use crate::v1::{
    Annotations, AudioContent, AuthAccount, AuthMethodId, AuthState, AuthStatusCapabilities,
    BlobResourceContents, BooleanPropertySchema, CompactionId, CompactionStatus,
    CompactionSummaryChunk, CompactionUpdate, Content, ContentBlock, Cost, ElicitationAcceptAction,
    ElicitationAction, ElicitationCapabilities, ElicitationContentValue,
    ElicitationFormCapabilities, ElicitationId, ElicitationMode, ElicitationNoContent,
    ElicitationPropertySchema, ElicitationSchema, ElicitationSchemaType, ElicitationScope,
    ElicitationUrlCapabilities, EmbeddedResource, EmbeddedResourceResource, EnumOption,
    EnvVariable, Extension, HttpHeader, Icon, IconTheme, ImageContent, Implementation,
    IntegerPropertySchema, LlmProtocol, MessageId, MultiSelectItems, MultiSelectPropertySchema,
    Notice, NoticeSeverity, NumberPropertySchema, PermissionOption, PermissionOptionId,
    PermissionOptionKind, PlanEntryPriority, PlanFile, PlanId, PlanMarkdown, PlanRemoved,
    ProtocolVersion, ProviderCurrentConfig, ProviderId, ProviderInfo, ProvidersCapabilities,
    RequestPermissionOutcome, RequestPermissionResponse, ResourceLink, Role,
    SelectedPermissionOutcome, SessionArchiveFilter, SessionCancelCapabilities,
    SessionConfigGroupId, SessionConfigId, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionConfigValueId, SessionId, SessionInfo, SessionMessage, SessionMessageChunk,
    SessionStatus, SteerRequest, SteerResponse, SteeringOutcome, StringFormat,
    StringMultiSelectItems, StringPropertySchema, SubagentSessionCapabilities, SubagentUpdate,
    SystemPrompt, SystemPromptMode, Terminal, TerminalId, TextContent, TextResourceContents,
    TitledMultiSelectItems, ToolCallId, ToolCallLocation, ToolKind,
};
pub use authentication::*;
pub use background::*;
pub use command::*;
pub use config_option::*;
pub use diff::*;
pub use initialize::*;
pub use mcp_server::*;
pub use message::*;
pub use permission::*;
pub use plan::*;
pub use prompt::*;
pub use session::*;
pub use session_status::*;
pub use session_update::*;
pub use state::*;
pub use terminal::*;
pub use tool_call::*;
