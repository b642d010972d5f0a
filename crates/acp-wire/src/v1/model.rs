//! Models, as agents had them before config options: `models` in session setup, and
//! `session/set_model`. No schema has them any more; agents that are in use do.

use super::SessionId;

string_id! {
    /// Names a model.
    pub struct ModelId;
}

record! {
    /// The models of a session.
    pub struct SessionModelState {
        /// The one it uses.
        required current_model_id: ModelId,
        /// All of them.
        required_list available_models: ModelInfo,
    }
}

record! {
    /// A model.
    pub struct ModelInfo {
        /// Its id.
        required model_id: ModelId,
        /// The name that is shown to the user.
        required name: String,
        /// What it is good for.
        optional description: String,
    }
}

record! {
    /// `session/set_model`.
    pub struct SetSessionModelRequest {
        /// The session.
        required session_id: SessionId,
        /// One of its available models.
        required model_id: ModelId,
    }
}

record! {
    /// The answer to `session/set_model`.
    pub struct SetSessionModelResponse {}
}
