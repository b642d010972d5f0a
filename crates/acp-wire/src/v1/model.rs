//! Model selection as it worked before config options: `models` in session setup, and `session/set_model`. Neither is
//! in the schema any longer, but several agents still use them.

use super::SessionId;

string_id! {
    /// The id of a language model, chosen by the agent.
    pub struct ModelId;
}

record! {
    /// The models that a session can use, and its current one.
    pub struct SessionModelState {
        /// The model that the session uses now.
        required current_model_id: ModelId,
        /// The models to choose from.
        required_list available_models: ModelInfo,
    }
}

record! {
    /// A language model that the agent offers.
    pub struct ModelInfo {
        /// The id used to switch to the model.
        required model_id: ModelId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
    }
}

record! {
    /// The `session/set_model` request: switches a session to another model.
    pub struct SetSessionModelRequest {
        /// The session whose model to switch.
        required session_id: SessionId,
        /// The model to switch to, one of the available models.
        required model_id: ModelId,
    }
}

record! {
    /// The response to `session/set_model`, sent once the model is switched.
    pub struct SetSessionModelResponse {}
}
