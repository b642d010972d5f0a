//! Agent mutants for the parts of the protocol that both versions share. There is one file for each part.

mod auth_status;
mod providers;
mod session_archive;
mod session_status;
mod subagents;
mod system_prompt;

use crate::mutants::layer::Mutant;

/// Returns the mutants of a version, `v1` or `v2`.
pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let parts = [
        session_archive::mutants(version),
        session_status::mutants(version),
        auth_status::mutants(),
        providers::mutants(),
        system_prompt::mutants(version),
        subagents::mutants(version),
    ];
    let mut mutants: Vec<Mutant> = parts.into_iter().flatten().collect();
    for mutant in &mut mutants {
        // Leaking is fine, because the tests end before there are many of these.
        mutant.kills = format!("{version}/{}", mutant.kills).leak();
    }
    mutants
}
