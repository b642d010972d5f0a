//! Model selection before there were config options: `models` in session setup, and `session/set_model`. No schema has
//! them any longer, but several agents still do.

use super::SessionId;

string_id! {
    /// The id of a model.
    pub struct ModelId;
}

record! {
    /// The models of a session.
    pub struct SessionModelState {
        /// The id of the current model.
        required current_model_id: ModelId,
        /// All available models.
        required_list available_models: ModelInfo,
    }
}

record! {
    /// A model that the agent offers.
    pub struct ModelInfo {
        /// The id of the model.
        required model_id: ModelId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
    }
}

record! {
    /// The `session/set_model` request: switches the model.
    pub struct SetSessionModelRequest {
        /// The id of the session.
        required session_id: SessionId,
        /// The id of one of the available models.
        required model_id: ModelId,
    }
}

record! {
    /// The response to `session/set_model`.
    pub struct SetSessionModelResponse {}
}
