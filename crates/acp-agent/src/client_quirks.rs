//! Workarounds for clients that deviate from the protocol.

use acp::agent::ClientInfo;

/// Clients that run a terminal's command through a shell without quoting its arguments. They turn `sh -c "cd x &&
/// make"` into `sh -c cd x && make`, which runs `make` in the wrong directory. That is not the command that the user
/// allowed.
///
/// `vscode-acp-client` is "ACP Client" for VS Code (formulahendry/vscode-acp), whose terminals are Node's `spawn`
/// with `shell: true`; seen in November 2026.
const CLIENTS_WITHOUT_QUOTING: [&str; 1] = ["vscode-acp-client"];

/// Returns `true` if the client supports terminals and runs commands in them exactly as requested.
pub(crate) fn runs_commands(client: &ClientInfo) -> bool {
    client.capabilities().terminal
        && !client
            .info()
            .is_some_and(|info| is_client_without_quoting(&info.name))
}

fn is_client_without_quoting(name: &str) -> bool {
    CLIENTS_WITHOUT_QUOTING.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_without_quoting_are_recognized_by_name() {
        assert!(is_client_without_quoting("vscode-acp-client"));
        assert!(!is_client_without_quoting("acp"));
    }
}
