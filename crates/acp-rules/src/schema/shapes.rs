//! Defines the schema of each protocol version: its methods, and the shapes of its messages.

use std::collections::HashMap;
use std::sync::LazyLock;

use acp_wire::{Method, v1, v2};

use super::notation;
use super::notation::ShapeDefinition;
use super::version::SchemaVersion;

/// The methods and message shapes of one protocol version.
#[derive(Debug)]
pub struct Schema {
    pub(super) shapes: HashMap<&'static str, ShapeDefinition>,
    methods: &'static [Method],
    version: SchemaVersion,
}

static V1: LazyLock<Schema> =
    LazyLock::new(|| Schema::parse(SchemaVersion::V1, include_str!("v1.shapes"), v1::METHODS));
static V2: LazyLock<Schema> =
    LazyLock::new(|| Schema::parse(SchemaVersion::V2, include_str!("v2.shapes"), v2::METHODS));

impl Schema {
    /// Returns the schema of a protocol version.
    #[must_use]
    pub fn for_version(version: SchemaVersion) -> &'static Self {
        match version {
            SchemaVersion::V1 => &V1,
            SchemaVersion::V2 => &V2,
        }
    }

    fn parse(version: SchemaVersion, text: &'static str, methods: &'static [Method]) -> Self {
        let (shapes, _) = notation::parse_shapes(text);
        Self {
            shapes,
            methods,
            version,
        }
    }

    /// Returns the protocol version that the schema describes.
    #[must_use]
    pub fn version(&self) -> SchemaVersion {
        self.version
    }

    /// Returns all methods of the protocol version.
    #[must_use]
    pub fn methods(&self) -> &'static [Method] {
        self.methods
    }

    /// Finds a method by its name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// Returns the names of all shapes, such as `PromptRequest`.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.shapes.keys().copied()
    }

    /// Returns the names of a shape's fields, leaving out fields of the unstable schema.
    #[must_use]
    pub fn fields(&self, name: &str) -> Vec<&'static str> {
        match self.shapes.get(name) {
            Some(ShapeDefinition::Object(object)) => {
                let stable = object.fields.iter().filter(|field| !field.unstable);
                stable.map(|field| field.name).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the tags of a shape's variants, leaving out variants of the unstable schema.
    #[must_use]
    pub fn variants(&self, name: &str) -> Vec<&'static str> {
        match self.shapes.get(name) {
            Some(ShapeDefinition::Object(object)) => {
                let variants = object.union.iter().flat_map(|union| &union.variants);
                let stable = variants.filter(|variant| !variant.unstable);
                stable.map(|variant| variant.value).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::checker;

    #[test]
    fn shapes_parse_and_reference_only_defined_names() {
        for (version, text) in [
            (SchemaVersion::V1, include_str!("v1.shapes")),
            (SchemaVersion::V2, include_str!("v2.shapes")),
        ] {
            let (_, mistakes) = notation::parse_shapes(text);
            assert_eq!(mistakes, Vec::<String>::new(), "{version}");
            assert_eq!(
                checker::names_without_shape(Schema::for_version(version)),
                Vec::<&str>::new(),
                "{version}"
            );
        }
    }

    #[test]
    fn every_stable_method_has_shapes() {
        for version in [SchemaVersion::V1, SchemaVersion::V2] {
            let schema = Schema::for_version(version);
            for method in schema.methods().iter().filter(|m| m.unstable.is_none()) {
                for name in [Some(method.params), method.result].into_iter().flatten() {
                    assert!(
                        schema.shapes.contains_key(name),
                        "{version}: {} refers to the undefined shape {name}",
                        method.name
                    );
                }
            }
        }
    }
}
