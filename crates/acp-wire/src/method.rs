//! What a method is, and the macro that makes the table of them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::surrogate::reading;

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The client, to the agent.
    Client,
    /// The agent, to the client.
    Agent,
    /// Either.
    Either,
}

/// Whether a message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// It is answered with a result or an error.
    Request,
    /// It is never answered.
    Notification,
}

/// A row of the method table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method {
    /// The name on the wire, such as `session/prompt`.
    pub name: &'static str,
    /// Who sends it.
    pub sender: Sender,
    /// Whether it is answered.
    pub kind: MethodKind,
    /// The type of its `params`.
    pub params: &'static str,
    /// The type of its `result`; `None` for a notification.
    pub result: Option<&'static str>,
    /// Why it is here though the stable schema of its version has it not; `None` if it has.
    pub unstable: Option<&'static str>,
}

impl Method {
    pub(crate) const fn request(
        name: &'static str,
        sender: Sender,
        params: &'static str,
        result: &'static str,
        unstable: Option<&'static str>,
    ) -> Self {
        Self {
            name,
            sender,
            kind: MethodKind::Request,
            params,
            result: Some(result),
            unstable,
        }
    }
    pub(crate) const fn notification(
        name: &'static str,
        sender: Sender,
        params: &'static str,
        unstable: Option<&'static str>,
    ) -> Self {
        Self {
            name,
            sender,
            kind: MethodKind::Notification,
            params,
            result: None,
            unstable,
        }
    }
}

/// The `params` of a request, which name its method and the type of its answer.
pub trait Request: Serialize + DeserializeOwned + Send + 'static {
    /// The method's name.
    const METHOD: &'static str;
    /// The type of the answer's `result`.
    type Response: Serialize + DeserializeOwned + Send + 'static;
}

/// The `params` of a notification, which name its method.
pub trait Notification: Serialize + DeserializeOwned + Send + 'static {
    /// The method's name.
    const METHOD: &'static str;
}

/// Why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No method of that name is sent in that direction.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// The method is known, but what it carries is not what it takes.
    #[error("{method}: {source}")]
    Invalid {
        /// The method.
        method: String,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
}

/// Reads `params`. Absent and `null` read as an empty object, which is what peers mean by them; half a
/// character in a string reads as U+FFFD.
///
/// # Errors
/// [`ReadError::Invalid`].
pub fn read_params<T: DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> Result<T, ReadError> {
    let text = match params.map(RawValue::get) {
        None | Some("null") => "{}",
        Some(text) => text,
    };
    reading(text, |text| serde_json::from_str(text)).map_err(|source| ReadError::Invalid {
        method: method.to_owned(),
        source,
    })
}

/// Reads a `result`. `null` reads as an empty object: several empty results are documented as `null`
/// in one place and as an object in another.
///
/// # Errors
/// [`ReadError::Invalid`].
pub fn read_result<T: DeserializeOwned>(method: &str, result: &RawValue) -> Result<T, ReadError> {
    read_params(method, Some(result))
}

/// Makes the method table of one version: `METHODS`, and for each direction an enum of what can be
/// sent in it. There is no other list of methods. `[shared]` behind a row: its types are those of another
/// version, which has told the method's name already. `[unstable "…"]`: the stable schema has it not,
/// and what it is here for.
macro_rules! method_table {
    (
        requests { $(
            $(#[$ea:meta])* $enum:ident from $sender:ident answered by $renum:ident {
                $( $(#[$va:meta])* $var:ident = $name:literal, $params:ty => $result:ty $(, [$($note:tt)*])?; )+
            }
        )+ }
        notifications { $(
            $(#[$na:meta])* $nenum:ident from $nsender:ident {
                $( $(#[$nva:meta])* $nvar:ident = $nname:literal, $nparams:ty $(, [$($nnote:tt)*])?; )+
            }
        )+ }
    ) => {
        /// Every method of this version of the protocol.
        pub const METHODS: &[crate::Method] = &[
            $($( crate::Method::request(
                $name, crate::Sender::$sender, stringify!($params), stringify!($result),
                method_table!(@unstable [$($($note)*)?]),
            ), )+)+
            $($( crate::Method::notification(
                $nname, crate::Sender::$nsender, stringify!($nparams),
                method_table!(@unstable [$($($nnote)*)?]),
            ), )+)+
        ];
        $(
            $( method_table!(@request [$($($note)*)?] $name, $params => $result); )+
            method_table!(@enum [$(#[$ea])*] $enum { $( [$(#[$va])*] $var = $name, $params; )+ });
            method_table!(@responses $enum $renum { $( $var = $name, $result; )+ });
        )+
        $(
            $( method_table!(@notification [$($($nnote)*)?] $nname, $nparams); )+
            method_table!(@enum [$(#[$na])*] $nenum { $( [$(#[$nva])*] $nvar = $nname, $nparams; )+ });
        )+
    };
    (@unstable [$(shared)? unstable $why:literal]) => { Some($why) };
    (@unstable [$(shared)?]) => { None };
    (@request [shared $($rest:tt)*] $name:literal, $params:ty => $result:ty) => {};
    (@request [$($rest:tt)*] $name:literal, $params:ty => $result:ty) => {
        impl crate::Request for $params {
            const METHOD: &'static str = $name;
            type Response = $result;
        }
    };
    (@notification [shared $($rest:tt)*] $name:literal, $params:ty) => {};
    (@notification [$($rest:tt)*] $name:literal, $params:ty) => {
        impl crate::Notification for $params { const METHOD: &'static str = $name; }
    };
    (@enum [$($ea:tt)*] $enum:ident { $( [$($va:tt)*] $var:ident = $name:literal, $params:ty; )+ }) => {
        $($ea)*
        #[derive(Debug, Clone, serde::Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant)]
        #[non_exhaustive]
        pub enum $enum {
            $( $($va)* $var($params), )+
            /// A method of an extension, whose name begins with `_`.
            Extension(crate::v1::Extension),
        }
        impl $enum {
            /// Reads the message that `method` and `params` make.
            ///
            /// # Errors
            /// The method is unknown in this direction, or `params` are not what it takes.
            pub fn read(method: &str, params: Option<&serde_json::value::RawValue>) -> Result<Self, crate::ReadError> {
                match method {
                    $( $name => crate::read_params(method, params).map(Self::$var), )+
                    _ if method.starts_with('_') => Ok(Self::Extension(crate::v1::Extension::new(method, params))),
                    _ => Err(crate::ReadError::UnknownMethod(method.to_owned())),
                }
            }
            /// The method's name.
            #[must_use]
            pub fn method(&self) -> &str {
                match self { $( Self::$var(_) => $name, )+ Self::Extension(ext) => &ext.method }
            }
        }
    };
    (@responses $enum:ident $renum:ident { $( $var:ident = $name:literal, $result:ty; )+ }) => {
        #[doc = concat!("The answer to a [`", stringify!($enum), "`].")]
        #[derive(Debug, Clone, serde::Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant)]
        #[non_exhaustive]
        pub enum $renum {
            $(
                #[doc = concat!("The answer to `", $name, "`.")]
                $var($result),
            )+
            /// The answer to a method of an extension.
            Extension(Box<serde_json::value::RawValue>),
        }
        impl $renum {
            /// Reads the `result` of the answer to `method`.
            ///
            /// # Errors
            /// The method is unknown in this direction, or the result is not what it gives.
            pub fn read(method: &str, result: &serde_json::value::RawValue) -> Result<Self, crate::ReadError> {
                match method {
                    $( $name => crate::read_result(method, result).map(Self::$var), )+
                    _ if method.starts_with('_') => Ok(Self::Extension(result.to_owned())),
                    _ => Err(crate::ReadError::UnknownMethod(method.to_owned())),
                }
            }
        }
    };
}
