//! Packages with an exact version, for `npx` and `uvx`.

/// The maximum length of a package with its version.
const MAX_PACKAGE_BYTES: usize = 256;

/// A package registry, and the runner of its packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackageRunner {
    Npx,
    Uvx,
}

impl PackageRunner {
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Npx => "npx",
            Self::Uvx => "uvx",
        }
    }

    /// Returns a package with an exact version, so that the runner always runs the same one. If the registry gives no
    /// version, or `latest`, it is that of the agent.
    ///
    /// # Errors
    /// The package is not the name of a package with an exact version.
    pub(crate) fn pin(self, package: &str, agent_version: &str) -> Result<String, String> {
        let (name, version) = self.split(package);
        let version = match version {
            None | Some("latest") => agent_version,
            Some(version) => version,
        };
        if !self.is_name(name) {
            return Err(format!("{package:?} is not the name of a package"));
        }
        let is_exact = |c: char| c.is_ascii_alphanumeric() || "-+._!".contains(c);
        let has_number = version.starts_with(|c: char| c.is_ascii_digit());
        // `1.x` and `1.*` are ranges.
        let is_range = version
            .split(['.', '-'])
            .any(|part| part == "x" || part == "X");
        if !has_number || !version.chars().all(is_exact) || is_range {
            return Err(format!("the package {package:?} has no exact version"));
        }
        let pinned = match self {
            Self::Npx => format!("{name}@{version}"),
            Self::Uvx => format!("{name}=={version}"),
        };
        match pinned.len() > MAX_PACKAGE_BYTES {
            true => Err("the name of the package is too long".to_owned()),
            false => Ok(pinned),
        }
    }

    /// Returns the arguments that run a pinned package. `program` is the program in it, if it is not called like the
    /// package.
    ///
    /// # Errors
    /// The program is not a plain name.
    pub(crate) fn arguments(
        self,
        pinned: &str,
        program: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let words: Vec<&str> = match (self, program) {
            (Self::Npx, None) => vec!["--yes", pinned],
            (Self::Npx, Some(program)) => vec!["--yes", "--package", pinned, "--", program],
            (Self::Uvx, None) => {
                let name = pinned.split(['=', '[']).next().unwrap_or(pinned);
                vec!["--from", pinned, name]
            }
            (Self::Uvx, Some(program)) => vec!["--from", pinned, program],
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if let Some(program) = program
            && (!program.starts_with(|c: char| c.is_ascii_alphanumeric())
                || !program.chars().all(plain))
        {
            return Err(format!("{program:?} is not the name of a program"));
        }
        Ok(words.into_iter().map(str::to_owned).collect())
    }

    fn split(self, package: &str) -> (&str, Option<&str>) {
        if let (Self::Uvx, Some((name, version))) = (self, package.split_once("==")) {
            return (name, Some(version));
        }
        // The scope of an npm package begins with `@`.
        let scope = usize::from(package.starts_with('@'));
        match package.get(scope..).and_then(|rest| rest.find('@')) {
            Some(at) => {
                let (name, rest) = package.split_at(scope + at);
                (name, rest.strip_prefix('@'))
            }
            None => (package, None),
        }
    }

    /// Returns `true` for the name of a package. A name is neither an option of the runner, nor a path or URL, which the
    /// runner would accept, too.
    fn is_name(self, name: &str) -> bool {
        let is_part = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(plain)
        };
        match self {
            Self::Npx => match name.strip_prefix('@') {
                Some(scoped) => scoped
                    .split_once('/')
                    .is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
                None => is_part(name),
            },
            Self::Uvx => match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
                Some((name, extras)) => is_part(name) && extras.split(',').all(is_part),
                None => is_part(name),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_get_an_exact_version() {
        use PackageRunner::{Npx, Uvx};
        for (runner, package, pinned) in [
            (
                Npx,
                "@google/gemini-cli@0.50.1",
                "@google/gemini-cli@0.50.1",
            ),
            (Npx, "@google/gemini-cli", "@google/gemini-cli@1.2.3"),
            (Npx, "cline@latest", "cline@1.2.3"),
            (Npx, "cline@2.0.0-beta.1", "cline@2.0.0-beta.1"),
            (Uvx, "fast-agent-acp==0.10.1", "fast-agent-acp==0.10.1"),
            (Uvx, "pyagent@latest", "pyagent==1.2.3"),
            (Uvx, "pyagent@1.0", "pyagent==1.0"),
            (Uvx, "pyagent[acp,mcp]==1.0", "pyagent[acp,mcp]==1.0"),
            (Uvx, "pyagent", "pyagent==1.2.3"),
        ] {
            assert_eq!(runner.pin(package, "1.2.3").unwrap(), pinned, "{package}");
        }
    }

    #[test]
    fn what_could_be_something_else_is_rejected() {
        use PackageRunner::{Npx, Uvx};
        for (runner, package) in [
            (Npx, "--call=sh@1.0.0"),
            (Npx, "../agent"),
            (Npx, "/tmp/agent"),
            (Npx, "https://example.org/x.tgz"),
            (Npx, "github:some/agent"),
            (Npx, "agent@^1.0.0"),
            (Npx, "agent@1.x"),
            (Npx, "agent@next"),
            (Npx, "agent@npm:other@1.0.0"),
            (Npx, "agent@1.0.0 --call=sh"),
            (Npx, "@scope"),
            (Npx, ""),
            (Uvx, "agent>=1.0"),
            (Uvx, "agent==1.*"),
            (Uvx, "agent @ https://example.org/x.whl"),
            (Uvx, "git+https://example.org/x"),
            (Uvx, "--python=3"),
        ] {
            runner.pin(package, "1.2.3").unwrap_err();
        }
        for program in ["--call", "../x", "a b", ""] {
            Npx.arguments("a@1.0.0", Some(program)).unwrap_err();
        }
    }
}
