//! What a method is, and the macro that makes the table of them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::surrogate::read_lossy;

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

/// A capability, which the side that receives a method must have for it to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// Where it is in the capabilities of that side, such as `sessionCapabilities.delete`.
    pub path: &'static str,
    /// It is a boolean. Otherwise it is an object.
    pub is_flag: bool,
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
    /// The capability that allows it. `None` if it may always be sent, or if no single capability decides.
    pub capability: Option<Capability>,
    /// Why it is here though the stable schema of its version has it not; `None` if it has.
    pub unstable: Option<&'static str>,
}

impl Method {
    pub(crate) const fn request(
        name: &'static str,
        sender: Sender,
        params: &'static str,
        result: &'static str,
    ) -> Self {
        Self {
            name,
            sender,
            kind: MethodKind::Request,
            params,
            result: Some(result),
            capability: None,
            unstable: None,
        }
    }

    pub(crate) const fn notification(
        name: &'static str,
        sender: Sender,
        params: &'static str,
    ) -> Self {
        Self {
            name,
            sender,
            kind: MethodKind::Notification,
            params,
            result: None,
            capability: None,
            unstable: None,
        }
    }

    // What is noted behind a row of the table.

    pub(crate) const fn shared(self) -> Self {
        self
    }

    pub(crate) const fn needs(self, path: &'static str) -> Self {
        Self {
            capability: Some(Capability {
                path,
                is_flag: false,
            }),
            ..self
        }
    }

    pub(crate) const fn needs_flag(self, path: &'static str) -> Self {
        Self {
            capability: Some(Capability {
                path,
                is_flag: true,
            }),
            ..self
        }
    }

    pub(crate) const fn unstable(self, why: &'static str) -> Self {
        Self {
            unstable: Some(why),
            ..self
        }
    }

    /// Whether the receiver allows this method: `capabilities` are its own, as it sent them in `initialize`.
    #[must_use]
    pub fn is_offered(&self, capabilities: &serde_json::Value) -> bool {
        let Some(needed) = self.capability else {
            return true;
        };
        let mut capability = capabilities;
        for name in needed.path.split('.') {
            match capability.get(name) {
                Some(inner) => capability = inner,
                None => return false,
            }
        }
        !matches!(
            capability,
            serde_json::Value::Null | serde_json::Value::Bool(false)
        )
    }
}

/// What handles messages of a type, and gives an `O` for each: [`v1::ClientRequest::handle`](crate::v1::ClientRequest::handle)
/// and its like hand a message to the implementation for its type. A message that nothing handles is an error of the
/// compiler's.
pub trait MessageHandler<M, O> {
    /// Handles the message.
    fn handle(self, message: M) -> O;
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
    read_lossy(text, |text| serde_json::from_str(text)).map_err(|source| ReadError::Invalid {
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
/// sent in it. There is no other list of methods. Notes follow a row's types:
///
/// - `shared`, the first of them: the types are those of version 1, which has told the method's name already.
/// - `needs "path"`, `needs_flag "path"`: the capability that allows it, an object or a boolean.
/// - `unstable "…"`: the stable schema has it not, and what it is here for.
macro_rules! method_table {
    (
        requests { $(
            $(#[$ea:meta])* $enum:ident from $sender:ident answered by $renum:ident {
                $( $(#[$va:meta])* $var:ident = $name:literal, $params:ident => $result:ident $(, $note:ident $($text:literal)?)*; )+
            }
        )+ }
        notifications { $(
            $(#[$na:meta])* $nenum:ident from $nsender:ident {
                $( $(#[$nva:meta])* $nvar:ident = $nname:literal, $nparams:ident $(, $nnote:ident $($ntext:literal)?)*; )+
            }
        )+ }
    ) => {
        /// Every method of this version of the protocol.
        pub const METHODS: &[crate::Method] = &[
            $($(
                crate::Method::request($name, crate::Sender::$sender, stringify!($params), stringify!($result))
                    $( .$note($($text)?) )*,
            )+)+
            $($(
                crate::Method::notification($nname, crate::Sender::$nsender, stringify!($nparams))
                    $( .$nnote($($ntext)?) )*,
            )+)+
        ];

        /// The method of this name.
        #[must_use]
        pub fn method(name: &str) -> Option<&'static crate::Method> {
            METHODS.iter().find(|method| method.name == name)
        }

        $(
            $( method_table!(@request [$($note)*] $name, $params => $result); )+
            method_table!(@enum [$(#[$ea])*] $enum { $( [$(#[$va])*] $var = $name, $params; )+ });
            method_table!(@responses $enum $renum { $( $var = $name, $result; )+ });
        )+
        $(
            $( method_table!(@notification [$($nnote)*] $nname, $nparams); )+
            method_table!(@enum [$(#[$na])*] $nenum { $( [$(#[$nva])*] $nvar = $nname, $nparams; )+ });
        )+
    };
    (@request [shared $($rest:ident)*] $name:literal, $params:ident => $result:ident) => {
        pub use crate::v1::{$params, $result};
    };
    (@request [$($rest:ident)*] $name:literal, $params:ident => $result:ident) => {
        impl crate::Request for $params {
            const METHOD: &'static str = $name;
            type Response = $result;
        }
    };
    (@notification [shared $($rest:ident)*] $name:literal, $params:ident) => {
        pub use crate::v1::$params;
    };
    (@notification [$($rest:ident)*] $name:literal, $params:ident) => {
        impl crate::Notification for $params { const METHOD: &'static str = $name; }
    };
    (@enum [$($ea:tt)*] $enum:ident { $( [$($va:tt)*] $var:ident = $name:literal, $params:ident; )+ }) => {
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
            /// Hands the message to what handles its type.
            pub fn handle<H, O>(self, handler: H) -> O
            where
                $( H: crate::MessageHandler<$params, O>, )+
                H: crate::MessageHandler<crate::v1::Extension, O>,
            {
                match self {
                    $( Self::$var(message) => crate::MessageHandler::<$params, O>::handle(handler, message), )+
                    Self::Extension(message) => crate::MessageHandler::<crate::v1::Extension, O>::handle(handler, message),
                }
            }
        }
    };
    (@responses $enum:ident $renum:ident { $( $var:ident = $name:literal, $result:ident; )+ }) => {
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
