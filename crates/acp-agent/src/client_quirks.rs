//! Clients that are known to do something else than they are asked.

use acp::agent::ClientInfo;

/// Those that run the command of a terminal through a shell, its arguments unquoted behind it: of `sh -c "cd x && make"`
/// they make `sh -c cd x && make`, which runs `make` elsewhere. That is not what the person was asked about.
///
/// `vscode-acp-client` is "ACP Client" for VS Code (formulahendry/vscode-acp), whose terminals are Node's `spawn` with
/// `shell: true`; seen in November 2026.
const UNQUOTED: [&str; 1] = ["vscode-acp-client"];

/// Whether commands can be run in the client's terminals, and are what was asked for there.
pub(crate) fn runs_commands(client: &ClientInfo) -> bool {
    client.capabilities().terminal && !client.info().is_some_and(|info| is_unquoted(&info.name))
}

fn is_unquoted(name: &str) -> bool {
    UNQUOTED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_their_names() {
        assert!(is_unquoted("vscode-acp-client"));
        assert!(!is_unquoted("acp"));
    }
}
