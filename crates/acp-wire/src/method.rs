//! Defines protocol methods, and the macro that generates the method tables.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::surrogate::read_lossy;

/// The side that sends a message: the client, the agent, or either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The client sends the message to the agent.
    Client,
    /// The agent sends the message to the client.
    Agent,
    /// Either side can send the message.
    Either,
}

/// Whether a method is a request, which expects a response, or a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// A request, which gets a result or an error.
    Request,
    /// A notification, which gets no response.
    Notification,
}

/// A capability that the receiver of a method must support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// The path of the capability in the receiver's capabilities, such as `sessionCapabilities.delete`.
    pub path: &'static str,
    /// Whether the capability is a boolean. Otherwise it is an object.
    pub is_flag: bool,
}

/// A protocol method: a row of the method table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method {
    /// The method's name in messages, such as `session/prompt`.
    pub name: &'static str,
    /// The side that sends the message.
    pub sender: Sender,
    /// Whether the message expects a response.
    pub kind: MethodKind,
    /// The name of the Rust type for the method's `params`.
    pub params: &'static str,
    /// The name of the Rust type for the method's `result`. `None` for a notification.
    pub result: Option<&'static str>,
    /// The capability that the receiver must support. `None` if the method can always be sent, or if it does not depend
    /// on a single capability.
    pub capability: Option<Capability>,
    /// The reason why the table contains a method that the version's stable schema lacks. `None` for stable methods.
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

    // The notes that can follow a row of the table, as builder methods.

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

    /// Returns `true` if a receiver with these capabilities, taken from `initialize`, supports this method.
    #[must_use]
    pub fn is_supported(&self, capabilities: &Value) -> bool {
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
        match capability {
            Value::Bool(supported) => *supported,
            Value::Null => false,
            _ => !needed.is_flag,
        }
    }
}

/// A handler for messages of type `M`, with a result of type `O`.
/// [`v1::ClientRequest::handle`](crate::v1::ClientRequest::handle) and similar functions pass each message to the
/// implementation for its type. A message without a handler is a compile error.
pub trait MessageHandler<M, O> {
    /// Handles a message, and returns the result.
    fn handle(self, message: M) -> O;
}

/// A client or an agent that may offer the method whose params have type `M`. The side that announces its capabilities
/// implements this for every method that requires one. Otherwise,
/// [`v1::ClientRequest::offered_by`](crate::v1::ClientRequest::offered_by) and similar functions do not compile.
pub trait MethodOffer<M> {
    /// Returns `true` if the side offers the method.
    fn is_offered(&self) -> bool;
}

/// The `params` of a request, with its method and the type of its response.
pub trait Request: Serialize + DeserializeOwned + Send + 'static {
    /// The method's name in messages, such as `session/prompt`.
    const METHOD: &'static str;
    /// The type of the response's `result`.
    type Response: Serialize + DeserializeOwned + Send + 'static;
}

/// A response with one potentially large piece of text, such as the content of a file. The text is written as the first
/// field, so that it can be decoded before the rest of the response has arrived.
pub trait TextResponse: Serialize + DeserializeOwned + Send + 'static {
    /// The name of the text field in JSON.
    const TEXT_FIELD: &'static str;

    /// Returns a mutable reference to the text, for moving it in or out.
    fn text_mut(&mut self) -> &mut String;
}

/// The `params` of a notification, with its method.
pub trait Notification: Serialize + DeserializeOwned + Send + 'static {
    /// The method's name in messages, such as `session/prompt`.
    const METHOD: &'static str;
}

/// The reason why a message could not be read: its method is unknown, or its contents are invalid.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The method does not exist, or is not sent in this direction.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// The method exists, but its params or result do not match it.
    #[error("{method}: {source}")]
    Invalid {
        /// The method's name in messages, such as `session/prompt`.
        method: String,
        /// The error, which says what is invalid and where.
        source: serde_json::Error,
    },
}

/// Reads the `params` of a message. Missing params and `null` are read as an empty object, because that is what peers
/// mean. A lone surrogate escape in a string is read as U+FFFD.
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

/// Reads the `result` of a response. `null` is read as an empty object, because the specification is inconsistent about
/// some empty results, documenting them both as `null` and as an object.
///
/// # Errors
/// [`ReadError::Invalid`].
pub fn read_result<T: DeserializeOwned>(method: &str, result: &RawValue) -> Result<T, ReadError> {
    read_params(method, Some(result))
}

/// Generates the method table of one version, or of the extensions: `METHODS`, and an enum of the messages in each
/// direction. Methods are not listed anywhere else. Notes follow a row's types:
///
/// - `shared`, which comes first: the types are those of version 1, which already name the method.
/// - `needs "path"`, `needs_flag "path"`: the capability that the receiver must support, an object or a boolean.
/// - `unstable "reason"`: why the table has a method that the stable schema does not have.
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
        )* }
    ) => {
        /// All methods of this table.
        pub const METHODS: &[crate::Method] = &[
            $($(
                crate::Method::request($name, crate::Sender::$sender, stringify!($params), stringify!($result))
                    $( .$note($($text)?) )*,
            )+)+
            $($(
                crate::Method::notification($nname, crate::Sender::$nsender, stringify!($nparams))
                    $( .$nnote($($ntext)?) )*,
            )+)*
        ];

        /// Returns the method with this name, if there is one.
        #[must_use]
        pub fn method(name: &str) -> Option<&'static crate::Method> {
            METHODS.iter().find(|method| method.name == name)
        }

        $(
            $( method_table!(@request [$($note)*] $name, $params => $result); )+
            method_table!(@enum [$(#[$ea])*] $enum { $( [$(#[$va])*] $var = $name, $params; )+ });
            method_table!(@responses $enum $renum { $( $var = $name, $result; )+ });
            method_table!(@offers $enum [] $( [$($note)*] $params; )+);
        )+
        $(
            $( method_table!(@notification [$($nnote)*] $nname, $nparams); )+
            method_table!(@enum [$(#[$na])*] $nenum { $( [$(#[$nva])*] $nvar = $nname, $nparams; )+ });
        )*
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
    // Iterates over the rows and collects those that require a capability.
    (@offers $enum:ident [$($gated:ident)*] [shared $($notes:ident)*] $params:ident; $($rows:tt)*) => {
        method_table!(@offers $enum [$($gated)*] [$($notes)*] $params; $($rows)*);
    };
    (@offers $enum:ident [$($gated:ident)*] [needs $($notes:ident)*] $params:ident; $($rows:tt)*) => {
        method_table!(@offers $enum [$($gated)* $params] $($rows)*);
    };
    (@offers $enum:ident [$($gated:ident)*] [needs_flag $($notes:ident)*] $params:ident; $($rows:tt)*) => {
        method_table!(@offers $enum [$($gated)* $params] $($rows)*);
    };
    (@offers $enum:ident [$($gated:ident)*] [$($notes:ident)*] $params:ident; $($rows:tt)*) => {
        method_table!(@offers $enum [$($gated)*] $($rows)*);
    };
    (@offers $enum:ident [$($gated:ident)*]) => {
        impl $enum {
            /// Returns the methods offered by `side` that require a capability.
            #[must_use]
            pub fn offered_by<S>(side: &S) -> Vec<&'static crate::Method>
            where
                $( S: crate::MethodOffer<$gated>, )*
            {
                let mut offered = Vec::new();
                $(
                    if crate::MethodOffer::<$gated>::is_offered(side) {
                        offered.extend(method(<$gated as crate::Request>::METHOD));
                    }
                )*
                offered
            }
        }
    };
    (@enum [$($ea:tt)*] $enum:ident { $( [$($va:tt)*] $var:ident = $name:literal, $params:ident; )+ }) => {
        $($ea)*
        #[derive(Debug, Clone, serde::Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant)]
        #[non_exhaustive]
        pub enum $enum {
            $( $($va)* $var($params), )+
            /// A message of an extension, whose method starts with `_`.
            Extension(crate::v1::Extension),
        }
        impl $enum {
            /// Reads a message from its `method` and `params`.
            ///
            /// # Errors
            /// The method does not exist in this direction, or `params` do not match it.
            pub fn read(method: &str, params: Option<&serde_json::value::RawValue>) -> Result<Self, crate::ReadError> {
                match method {
                    $( $name => crate::read_params(method, params).map(Self::$var), )+
                    _ if method.starts_with('_') => Ok(Self::Extension(crate::v1::Extension::new(method, params))),
                    _ => Err(crate::ReadError::UnknownMethod(method.to_owned())),
                }
            }
            /// Returns the method's name, such as `session/prompt`.
            #[must_use]
            pub fn method(&self) -> &str {
                match self { $( Self::$var(_) => $name, )+ Self::Extension(ext) => &ext.method }
            }
            /// Passes the message to the handler for its type.
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
        #[doc = concat!("The response to a [`", stringify!($enum), "`].")]
        #[derive(Debug, Clone, serde::Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant)]
        #[non_exhaustive]
        pub enum $renum {
            $(
                #[doc = concat!("The response to `", $name, "`.")]
                $var($result),
            )+
            /// The result of an extension method, as JSON text.
            Extension(Box<serde_json::value::RawValue>),
        }
        impl $renum {
            /// Reads the `result` of the response to `method`.
            ///
            /// # Errors
            /// The method does not exist in this direction, or the result does not match it.
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
