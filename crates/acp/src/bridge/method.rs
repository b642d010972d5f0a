//! Method names for the bridge, taken from the method tables.

use acp_wire::jsonrpc::CancelRequestNotification;
use acp_wire::{Notification, Request, v1, v2};

pub(super) const INITIALIZE: &str = v1::InitializeRequest::METHOD;
pub(super) const NEW_SESSION: &str = v1::NewSessionRequest::METHOD;
pub(super) const FORK_SESSION: &str = v1::ForkSessionRequest::METHOD;
pub(super) const LOAD_SESSION: &str = v1::LoadSessionRequest::METHOD;
pub(super) const RESUME_SESSION: &str = v1::ResumeSessionRequest::METHOD;
pub(super) const LIST_SESSIONS: &str = v1::ListSessionsRequest::METHOD;
pub(super) const CLOSE_SESSION: &str = v1::CloseSessionRequest::METHOD;
pub(super) const DELETE_SESSION: &str = v1::DeleteSessionRequest::METHOD;
pub(super) const ARCHIVE_SESSION: &str = v1::ArchiveSessionRequest::METHOD;
pub(super) const SET_OPTION: &str = v1::SetSessionConfigOptionRequest::METHOD;
pub(super) const SET_MODE: &str = v1::SetSessionModeRequest::METHOD;
pub(super) const SET_MODEL: &str = v1::SetSessionModelRequest::METHOD;
pub(super) const PROMPT: &str = v1::PromptRequest::METHOD;
pub(super) const REQUEST_PERMISSION: &str = v1::RequestPermissionRequest::METHOD;
pub(super) const CREATE_ELICITATION: &str = v1::CreateElicitationRequest::METHOD;

pub(super) const AUTHENTICATE: &str = v1::AuthenticateRequest::METHOD;
pub(super) const LOGOUT_V1: &str = v1::LogoutRequest::METHOD;
pub(super) const LOGIN: &str = v2::LoginAuthRequest::METHOD;
pub(super) const LOGOUT_V2: &str = v2::LogoutAuthRequest::METHOD;

pub(super) const SESSION_UPDATE: &str = v1::SessionNotification::METHOD;
pub(super) const CANCEL_TURN: &str = v1::CancelNotification::METHOD;
pub(super) const CANCEL_REQUEST: &str = CancelRequestNotification::METHOD;

/// Returns `true` if `method` is a client method that exists only in version 1.
pub(super) fn is_v1_client_method(method: &str) -> bool {
    method.starts_with("fs/") || method.starts_with("terminal/")
}
