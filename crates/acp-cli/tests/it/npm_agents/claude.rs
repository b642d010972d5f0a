//! Starts Claude Code's adapter with a scripted model.

use std::fs;
use std::path::Path;

use crate::common::prepared_model::PreparedModel;

/// Returns the command line of the agent, with a home of its own and this model. It asks before it runs a command.
pub(super) fn claude_command(program: &Path, home: &Path, model: &PreparedModel) -> String {
    let config = home.join(".claude");
    fs::create_dir_all(&config).unwrap();
    // The default mode would ask the model whether a command is safe.
    let settings = r#"{"permissions": {"defaultMode": "default"}}"#;
    fs::write(config.join("settings.json"), settings).unwrap();
    format!(
        "env HOME={home} CLAUDE_CONFIG_DIR={} ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=none \
         CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 node {}",
        config.display(),
        model.origin(),
        program.display(),
        home = home.display(),
    )
}
