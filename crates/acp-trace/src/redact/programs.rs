//! Lists programs that take secrets as arguments, and their flags.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The secret part of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretPart {
    All,
    /// Everything after the first occurrence of this character. If the character does not occur, nothing is secret.
    After(char),
    /// The value of a header whose name hints at a secret.
    Header,
    /// The values of cookies. An argument without `=` is a file name.
    Cookie,
    /// The values of form fields whose names hint at secrets.
    Form,
}
use SecretPart::{After, All, Cookie, Form, Header};

/// The form in which a flag's value is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlagForm {
    /// The value is the next argument, or comes after `=`.
    Next,
    /// The value is in the same argument.
    Attached,
    /// Either form is possible.
    Both,
}
use FlagForm::{Attached, Both, Next};

/// A program that takes secrets as arguments.
#[derive(Debug)]
pub(super) struct SecretProgram {
    pub(super) names: &'static [&'static str],
    /// The subcommand that must come before the flags, if any.
    pub(super) subcommand: Option<&'static str>,
    pub(super) flags: &'static [(&'static str, SecretPart, FlagForm)],
}

pub(super) const PROGRAMS: &[SecretProgram] = &[
    SecretProgram {
        names: &["curl"],
        subcommand: None,
        flags: &[
            ("-u", After(':'), Both),
            ("--user", After(':'), Next),
            ("-U", After(':'), Both),
            ("--proxy-user", After(':'), Next),
            ("-E", After(':'), Both),
            ("--cert", After(':'), Next),
            ("-H", Header, Both),
            ("--header", Header, Next),
            ("--proxy-header", Header, Next),
            ("-b", Cookie, Both),
            ("--cookie", Cookie, Next),
            ("--oauth2-bearer", All, Next),
            ("--pass", All, Next),
            ("-d", Form, Both),
            ("--data", Form, Next),
            ("--data-raw", Form, Next),
            ("--data-ascii", Form, Next),
            ("--data-binary", Form, Next),
            ("--data-urlencode", Form, Next),
            ("-F", Form, Both),
            ("--form", Form, Next),
            ("--form-string", Form, Next),
        ],
    },
    SecretProgram {
        names: &["wget", "wget2"],
        subcommand: None,
        flags: &[
            ("--header", Header, Next),
            ("--post-data", Form, Next),
            ("--body-data", Form, Next),
        ],
    },
    SecretProgram {
        names: &["http", "https", "xh", "xhs"],
        subcommand: None,
        flags: &[("-a", After(':'), Both), ("--auth", After(':'), Next)],
    },
    SecretProgram {
        names: &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlcheck",
            "mysqlshow",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
            "mariadb-check",
            "7z",
            "7za",
            "7zz",
            "7zr",
            "rar",
            "unrar",
        ],
        subcommand: None,
        // As a separate argument, it is not a password, because the program then prompts for one.
        flags: &[("-p", All, Attached), ("-hp", All, Attached)],
    },
    SecretProgram {
        names: &[
            "sshpass",
            "mongo",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoexport",
            "mongoimport",
        ],
        subcommand: None,
        flags: &[("-p", All, Both)],
    },
    SecretProgram {
        names: &["redis-cli"],
        subcommand: None,
        flags: &[("-a", All, Next), ("--pass", All, Next)],
    },
    SecretProgram {
        names: &[
            "docker", "podman", "buildah", "skopeo", "nerdctl", "helm", "crane", "oras", "az", "oc",
        ],
        subcommand: Some("login"),
        flags: &[("-p", All, Both)],
    },
    SecretProgram {
        names: &["zip", "unzip", "sqlcmd", "bcp"],
        subcommand: None,
        flags: &[("-P", All, Both)],
    },
    SecretProgram {
        names: &[
            "ldapsearch",
            "ldapadd",
            "ldapmodify",
            "ldapdelete",
            "ldapwhoami",
            "ldappasswd",
        ],
        subcommand: None,
        flags: &[("-w", All, Both)],
    },
    SecretProgram {
        names: &["smbclient", "rpcclient", "smbget"],
        subcommand: None,
        flags: &[("-U", After('%'), Both), ("--user", After('%'), Next)],
    },
    SecretProgram {
        names: &["lftp"],
        subcommand: None,
        flags: &[("-u", After(','), Both)],
    },
    SecretProgram {
        names: &["openssl"],
        subcommand: None,
        flags: &[
            ("-passin", After(':'), Next),
            ("-passout", After(':'), Next),
            ("-pass", After(':'), Next),
            ("-k", All, Next),
        ],
    },
    SecretProgram {
        names: &["keytool", "jarsigner"],
        subcommand: None,
        flags: &[
            ("-storepass", All, Next),
            ("-keypass", All, Next),
            ("-srcstorepass", All, Next),
            ("-deststorepass", All, Next),
        ],
    },
];

/// curl flags that take no value and may be combined with a flag that does: `-sSu`.
pub(super) const CURL_SWITCHES: &str = "#0123468afgGiIjJkLlnNOpqRsSvZ";

/// Returns the range of the program's name in a word, which may include a directory.
fn name_range(word: &str) -> Option<Range<usize>> {
    let start = word.rfind(['/', '\\', '"', '\'']).map_or(0, |at| at + 1);
    let name = word.get(start..)?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let known = PROGRAMS.iter().any(|program| program.names.contains(&name));
    known.then(|| start..start + name.len())
}

/// Returns the program that a word runs, or `None` if it is not in the table.
pub(super) fn find_program(word: &str) -> Option<&'static SecretProgram> {
    let name = word.get(name_range(word)?)?;
    PROGRAMS
        .iter()
        .find(|program| program.names.contains(&name))
}

/// Returns a pattern that matches the name of any program in the table.
pub(super) fn name_pattern() -> &'static Regex {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        let names = PROGRAMS.iter().flat_map(|program| program.names);
        let names: Vec<&str> = names.copied().collect();
        // The names consist of letters and hyphens, so this is a valid pattern. A test compiles it.
        #[allow(clippy::expect_used, reason = "the pattern is built from constants")]
        Regex::new(&format!(r"(?-u:\b)(?:{})(?-u:\b)", names.join("|")))
            .expect("the names form a valid pattern")
    });
    &PATTERN
}
