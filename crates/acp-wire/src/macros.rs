//! Defines the four kinds of protocol types. Each kind is defined in one place, so that all its types are read and
//! written by the same rules.
//!
//! | macro        | JSON                                   | unknown input                          |
//! |--------------|----------------------------------------|----------------------------------------|
//! | `record!`    | an object                              | extra fields are ignored               |
//! | `tagged!`    | an object with its type in one field   | preserved as `Unknown(RawObject)`      |
//! | `open_enum!` | one of several strings                 | preserved as `Unknown(String)`         |
//! | `string_id!` | a string that is an id                 | –                                      |

/// Defines a JSON object. Each field starts with its *kind*, the rule that the schema sets for it:
///
/// - `required x: T`: must be present; an argument of `new`.
/// - `tolerant x: T`: an argument of `new` and always written; absent, `null` or malformed is read as the default,
///   because some peers omit it.
/// - `optional x: T`: `Option<T>`; absent, `null` or malformed is read as `None`; `None` is not written.
/// - `strict x: T`: `Option<T>`; absent or `null` is read as `None`, malformed is an error; `None` is not written.
/// - `defaulted x: T`: absent, `null` or malformed is read as the default; always written.
/// - `list x: T`: `Vec<T>`; malformed items are skipped; not written when empty.
/// - `written_list x: T`: like `list`, but also written when empty, because peers expect it.
/// - `required_list x: T`: like `list`, but an argument of `new` and always written.
/// - `optional_list x: T`: `Option<Vec<T>>`; "absent" and "empty" differ, because in an update, empty clears.
/// - `clearable x: T`: `Option<Option<T>>`; in an update, absent or malformed is read as `None` (no change), and `null`
///   as `Some(None)` (no value from now on).
/// - `clearable_list x: T`: `Option<Option<Vec<T>>>`; like `clearable`, and malformed items are skipped.
/// - `any x`: any JSON value; absent, `null` or what `serde_json::Value` cannot represent is read as `None`.
/// - `clearable_any x`: `Option<serde_json::Value>`; in an update, `null` is a value that clears.
///
/// Every record has `meta` (`_meta`), a constructor `new(required…)`, and one setter for each field. In a `pub patch`
/// instead of a `pub struct`, `_meta` is `clearable`, because the record updates something with its own `_meta`. A
/// `pub secret` contains data that must not appear in logs: its `Debug` is written by hand.
///
/// `pub struct Name from Fields` is read as `Fields`, because its fields may have other names. `Fields` derives
/// `Deserialize` and converts into `Name`.
///
/// A record is read from an object only. The implementation that serde derives for a struct also accepts an array of
/// its values, which the schema does not allow; so it is read through
/// [`ObjectOnly`](crate::object_only::ObjectOnly).
macro_rules! record {
    ($(#[$a:meta])* pub struct $name:ident $(from $read:ty)? { $($body:tt)* }) => {
        record! { @munch [struct [$($read)?] #[derive(Debug)] $(#[$a])*] $name {} {} {} {} ; $($body)* }
    };
    ($(#[$a:meta])* pub secret $name:ident { $($body:tt)* }) => {
        record! { @munch [struct [] $(#[$a])*] $name {} {} {} {} ; $($body)* }
    };
    ($(#[$a:meta])* pub patch $name:ident { $($body:tt)* }) => {
        record! { @munch [patch [] #[derive(Debug)] $(#[$a])*] $name {} {} {} {} ; $($body)* }
    };

    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* required $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])* pub $x: $t,} {$($c)* $x: $t,} {$($d)*} {$($s)*} ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* tolerant $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])* #[serde(default, deserialize_with = "crate::lenient::defaulted")] pub $x: $t,}
            {$($c)* $x: $t,} {$($d)*} {$($s)*} ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* required_list $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])* #[serde(default, deserialize_with = "crate::lenient::list")] pub $x: Vec<$t>,}
            {$($c)* $x: Vec<$t>,} {$($d)*} {$($s)*} ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* optional $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::option", skip_serializing_if = "Option::is_none")]
             pub $x: Option<$t>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<$t>) -> Self { self.$x = Some($x.into()); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* strict $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, skip_serializing_if = "Option::is_none")]
             pub $x: Option<$t>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<$t>) -> Self { self.$x = Some($x.into()); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* defaulted $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])* #[serde(default, deserialize_with = "crate::lenient::defaulted")] pub $x: $t,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<$t>) -> Self { self.$x = $x.into(); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* list $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::list", skip_serializing_if = "Vec::is_empty")]
             pub $x: Vec<$t>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<Vec<$t>>) -> Self { self.$x = $x.into(); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* written_list $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::list")]
             pub $x: Vec<$t>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<Vec<$t>>) -> Self { self.$x = $x.into(); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* optional_list $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::optional_list", skip_serializing_if = "Option::is_none")]
             pub $x: Option<Vec<$t>>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<Vec<$t>>) -> Self { self.$x = Some($x.into()); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* clearable $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::clearable", skip_serializing_if = "Option::is_none")]
             pub $x: Option<Option<$t>>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<$t>) -> Self { self.$x = Some(Some($x.into())); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* clearable_list $x:ident : $t:ty, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::clearable", skip_serializing_if = "Option::is_none")]
             pub $x: Option<Option<Vec<$t>>>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<Vec<$t>>) -> Self { self.$x = Some(Some($x.into())); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* clearable_any $x:ident, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::clearable_any", skip_serializing_if = "Option::is_none")]
             #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::clearable_value))]
             pub $x: Option<serde_json::Value>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<serde_json::Value>) -> Self { self.$x = Some($x.into()); self }}
            ; $($rest)* }
    };
    (@munch $a:tt $n:ident {$($f:tt)*} {$($c:tt)*} {$($d:tt)*} {$($s:tt)*} ;
        $(#[$fa:meta])* any $x:ident, $($rest:tt)*) => {
        record! { @munch $a $n
            {$($f)* $(#[$fa])*
             #[serde(default, deserialize_with = "crate::lenient::option", skip_serializing_if = "Option::is_none")]
             #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_value))]
             pub $x: Option<serde_json::Value>,}
            {$($c)*} {$($d)* $x,}
            {$($s)*
             #[doc = concat!("Sets [`", stringify!($x), "`](Self#structfield.", stringify!($x), ").")]
             #[must_use] pub fn $x(mut self, $x: impl Into<serde_json::Value>) -> Self { self.$x = Some($x.into()); self }}
            ; $($rest)* }
    };

    // If no field is required, the record also has a `Default`.
    (@munch $a:tt $n:ident $f:tt {} {$($d:ident,)*} $s:tt ;) => {
        record! { @emit $a $n $f {} {$($d,)*} $s }
        impl Default for $n {
            fn default() -> Self { Self::new() }
        }
    };
    (@munch $a:tt $n:ident $f:tt $c:tt $d:tt $s:tt ;) => {
        record! { @emit $a $n $f $c $d $s }
    };

    (@emit [struct [$($read:ty)?] $($a:tt)*] $n:ident $f:tt $c:tt $d:tt $s:tt) => {
        record! { @write [$($read)?] [$($a)*] $n $f $c $d $s
            [
                /// Custom data (`_meta`). See the specification's page "Extensibility", "The `_meta` Field".
                #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option", skip_serializing_if = "Option::is_none")]
                #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
                Option<crate::Meta>
            ]
            [|meta| Some(meta)]
        }
    };
    (@emit [patch [$($read:ty)?] $($a:tt)*] $n:ident $f:tt $c:tt $d:tt $s:tt) => {
        record! { @write [$($read)?] [$($a)*] $n $f $c $d $s
            [
                /// Changes to the custom data (`_meta`). Each field sets a value or, if it is `null`, removes one. A
                /// `null` instead of the object removes all custom data.
                #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::clearable", skip_serializing_if = "Option::is_none")]
                #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::clearable_meta))]
                Option<Option<crate::Meta>>
            ]
            [|meta| Some(Some(meta))]
        }
    };
    (@write $read:tt [$($a:tt)*] $n:ident {$($f:tt)*} {$($x:ident : $t:ty,)*} {$($d:ident,)*} {$($s:tt)*}
        [$(#[$ma:meta])* $mt:ty] [$set:expr]) => {
        #[derive(Clone, PartialEq, serde::Serialize)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        $($a)*
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $n {
            $($f)*
            $(#[$ma])*
            pub meta: $mt,
        }
        record! { @read $read $n { $($f)* $(#[$ma])* pub meta: $mt, } }
        impl $n {
            /// Creates a value from its required fields. All other fields are absent.
            #[must_use]
            #[allow(clippy::new_without_default)]
            pub fn new($($x: impl Into<$t>),*) -> Self {
                Self { $($x: $x.into(),)* $($d: Default::default(),)* meta: None }
            }
            $($s)*
            /// Sets `_meta`.
            #[must_use]
            pub fn meta(mut self, meta: crate::Meta) -> Self { self.meta = ($set)(meta); self }
        }
        impl crate::lenient::Lenient for $n {
            fn lenient<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
                crate::lenient::read_via_raw(d)
            }
        }
    };

    (@read [] $n:ident { $($f:tt)* }) => {
        const _: () = {
            type Record = $n;
            // Never constructed: its derived implementation constructs the record directly.
            #[derive(serde::Deserialize)]
            #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
            #[serde(remote = "Record", rename_all = "camelCase")]
            #[allow(dead_code, unreachable_pub)]
            struct RecordFields { $($f)* }
            impl<'de> serde::Deserialize<'de> for $n {
                fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                    RecordFields::deserialize(crate::object_only::ObjectOnly(d))
                }
            }
        };
    };
    (@read [$read:ty] $n:ident $f:tt) => {
        impl<'de> serde::Deserialize<'de> for $n {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let read: $read = crate::object_only::deserialize(d)?;
                Self::try_from(read).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Defines an enum for a field that is one of several strings. Other strings are preserved in `Unknown`.
macro_rules! open_enum {
    (
        $(#[$a:meta])*
        pub enum $name:ident { $( $(#[$va:meta])* $var:ident = $lit:literal, )+ }
    ) => {
        $(#[$a])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$va])* $var, )+
            /// A value that is not in the specification, exactly as received.
            #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
            Unknown(String),
        }
        impl $name {
            /// All values in the specification, in the same order.
            pub const KNOWN: &'static [Self] = &[$(Self::$var),+];

            /// Returns the value as written in messages.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self { $( Self::$var => $lit, )+ Self::Unknown(s) => s }
            }
        }
        impl From<&str> for $name {
            fn from(s: &str) -> Self {
                match s { $( $lit => Self::$var, )+ other => Self::Unknown(other.to_owned()) }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.serialize_str(self.as_str()) }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                crate::lenient::read_str(d, |s| Self::from(s))
            }
        }
        impl crate::lenient::Lenient for $name {
            fn lenient<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
                crate::lenient::read_str_or_none(d, |s| Self::from(s))
            }
        }
    };
}

/// Defines a string id. It is cheap to clone, because ids are copied into every update.
macro_rules! string_id {
    ($( $(#[$a:meta])* pub struct $name:ident; )+) => { $(
        $(#[$a])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        pub struct $name(pub std::sync::Arc<str>);
        impl $name {
            /// Returns the id as a string.
            #[must_use]
            pub fn as_str(&self) -> &str { &self.0 }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{:?}", self.0) }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(&self.0) }
        }
        impl From<&str> for $name { fn from(s: &str) -> Self { Self(s.into()) } }
        impl From<String> for $name { fn from(s: String) -> Self { Self(s.into()) } }
        impl From<&$name> for $name { fn from(s: &$name) -> Self { s.clone() } }
        impl AsRef<str> for $name { fn as_ref(&self) -> &str { &self.0 } }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.serialize_str(&self.0) }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                crate::lenient::read_str(d, |s| Self(s.into()))
            }
        }
        impl crate::lenient::Lenient for $name {
            fn lenient<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
                crate::lenient::read_str_or_none(d, |s| Self(s.into()))
            }
        }
    )+ };
}

/// Defines an enum for an object whose type is given by one of its fields, the tag.
///
/// - `Variant(Type) = "tag" | "alias"` lists the tags of a variant. An object with an unlisted tag is read as
///   `Unknown`, with all its fields as received.
/// - `; Variant(Type) without tag` names the variant that has no tag.
/// - With `fallback = path`, an unlisted tag is first passed to `path(&str, &RawObject) -> Option<Self>`.
/// - With `untagged = Variant`, an object without a tag is read as that variant, which is written with its tag.
///
/// Reading takes a single pass if the tag comes first, which is the usual order. Otherwise the fields before it are
/// stored and read again.
macro_rules! tagged {
    (
        $(#[$a:meta])*
        pub enum $name:ident by $tag:literal {
            $( $(#[$va:meta])* $var:ident($ty:ty) = $lit:literal $(| $alias:literal)* ,)+
            $(; $(#[$ua:meta])* $uvar:ident($uty:ty) without tag )?
        }
        $(fallback = $fallback:path;)?
        $(untagged = $dvar:ident;)?
    ) => {
        $(#[$a])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        #[serde(tag = $tag)]
        #[allow(clippy::large_enum_variant)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$va])* #[serde(rename = $lit)] $var($ty), )+
            $( $(#[$ua])* #[serde(untagged)] $uvar($uty), )?
            /// A type that is not in the specification, with all its fields as received.
            #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
            #[serde(untagged)]
            Unknown(crate::RawObject),
        }
        impl $name {
            /// The tags in the specification, in the same order.
            pub const TAGS: &'static [&'static str] = &[$($lit),+];
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                #[derive(Clone, Copy)]
                #[allow(clippy::upper_case_acronyms)]
                enum KnownTag { $($var),+ }
                impl crate::tagged::Tags for KnownTag {
                    const FIELD: &'static str = $tag;
                    fn from_tag(tag: &str) -> Option<Self> {
                        match tag { $( $lit $(| $alias)* => Some(Self::$var), )+ _ => None }
                    }
                }
                struct TaggedVisitor;
                impl<'de> serde::de::Visitor<'de> for TaggedVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object with \"", $tag, "\""))
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        use crate::tagged::{TaggedObject, read_tag};
                        #[allow(unused_imports)]
                        use serde::de::Error as _;
                        match read_tag::<KnownTag, A>(map)? {
                            TaggedObject::Tagged(known, rest) => match known {
                                $( KnownTag::$var => Ok($name::$var(rest.read()?)), )+
                            },
                            TaggedObject::Unknown(_tag, object) => {
                                $( if let Some(found) = $fallback(&_tag, &object) { return Ok(found); } )?
                                Ok($name::Unknown(object))
                            }
                            #[allow(unreachable_code)]
                            TaggedObject::Untagged(_object) => {
                                $( return _object.read::<$uty>().map($name::$uvar).map_err(A::Error::custom); )?
                                $( return _object.read().map($name::$dvar).map_err(A::Error::custom); )?
                                Err(A::Error::missing_field($tag))
                            }
                        }
                    }
                }
                d.deserialize_map(TaggedVisitor)
            }
        }
        impl crate::lenient::Lenient for $name {
            fn lenient<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
                crate::lenient::read_via_raw(d)
            }
        }
    };
}
