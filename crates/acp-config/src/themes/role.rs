//! The kinds of elements that a theme gives a style to.

macro_rules! roles {
    ($($role:ident $name:literal $about:literal;)*) => {
        /// A kind of element on the screen that a theme gives a style to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ThemeRole {
            $(#[doc = $about] $role,)*
        }

        impl ThemeRole {
            /// All roles, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$role),*];

            /// Returns the role's name in a theme file.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$role => $name,)* }
            }
        }
    };
}

roles! {
    Text "text" "Ordinary text. Its background fills the screen.";
    Dim "dim" "Less important text.";
    Strong "strong" "Emphasized text.";
    Accent "accent" "What users look for, such as keys and the active tab.";
    Good "good" "Successful results.";
    Bad "bad" "Failures.";
    Warn "warn" "Warnings, and characters that are written as escapes.";
    User "user" "The user's messages.";
    Thought "thought" "The agent's thoughts.";
    Border "border" "Borders and separators.";
    Focus "focus" "The border of the element with the keyboard focus.";
    Selected "selected" "The selected entry of a list.";
    Matched "matched" "Letters that match a filter.";
    Heading "heading" "Headings.";
    Code "code" "Code within a line.";
    Link "link" "Links and mentioned files.";
    Quote "quote" "Quotations.";
    Added "added" "Added lines.";
    Removed "removed" "Removed lines.";
    AddedWord "added-word" "Changed words in an added line.";
    RemovedWord "removed-word" "Changed words in a removed line.";
    SyntaxComment "syntax-comment" "Comments in code.";
    SyntaxString "syntax-string" "Strings in code.";
    SyntaxNumber "syntax-number" "Numbers and constants in code.";
    SyntaxKeyword "syntax-keyword" "Keywords in code.";
    SyntaxFunction "syntax-function" "Names of functions in code.";
    SyntaxType "syntax-type" "Names of types in code.";
    SyntaxTag "syntax-tag" "Tags and special variables in code.";
}

impl ThemeRole {
    /// Returns the role with this name.
    pub(super) fn find(name: &str) -> Option<Self> {
        let mut roles = Self::ALL.iter();
        roles.find(|role| role.name() == name).copied()
    }

    /// Returns the names of all roles, separated by commas, for an error message.
    pub(super) fn names() -> String {
        let names = Self::ALL.iter().map(|role| role.name());
        names.collect::<Vec<_>>().join(", ")
    }
}
