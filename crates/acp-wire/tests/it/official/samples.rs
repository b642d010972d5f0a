//! Generates sample values from the official crate's own schemas.

use serde_json::{Value, json};

/// Sample values that together cover every property and every alternative in a JSON Schema. They reveal anything that
/// the official crate supports and this one does not.
pub(crate) struct Samples<'a> {
    definitions: &'a Value,
}

impl<'a> Samples<'a> {
    pub(crate) fn for_schema(schema: &'a Value) -> Vec<Value> {
        Self {
            definitions: &schema["$defs"],
        }
        .samples(schema)
    }

    fn samples(&self, schema: &Value) -> Vec<Value> {
        let Some(schema) = schema.as_object() else {
            // `true` allows anything.
            return vec![json!({"any": [1, null]}), json!("any")];
        };
        if let Some(value) = schema.get("const") {
            return vec![value.clone()];
        }
        // The schema itself first, then what it refers to, then one of the alternatives.
        let mut made = vec![self.typed_samples(schema)];
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            made.push(self.samples(&self.definitions[name.trim_start_matches("#/$defs/")]));
        }
        made.extend(
            schema
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|s| self.samples(s)),
        );
        let alternatives: Vec<_> = ["oneOf", "anyOf"]
            .iter()
            .filter_map(|key| schema.get(*key)?.as_array())
            .flatten()
            .flat_map(|alternative| self.samples(alternative))
            .collect();
        if !alternatives.is_empty() {
            made.push(alternatives);
        }
        made.retain(|samples| !samples.is_empty());
        made.into_iter()
            .reduce(|a, b| combine(&a, &b))
            .unwrap_or_else(|| vec![json!({"any": 1})])
    }

    fn typed_samples(&self, schema: &serde_json::Map<String, Value>) -> Vec<Value> {
        let types: Vec<_> = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(some)) => some.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        types
            .into_iter()
            .flat_map(|name| self.samples_of_one_type(name, schema))
            .collect()
    }

    fn samples_of_one_type(
        &self,
        name: &str,
        schema: &serde_json::Map<String, Value>,
    ) -> Vec<Value> {
        match name {
            "null" => vec![Value::Null],
            "boolean" => vec![json!(true), json!(false)],
            "integer" => vec![json!(1), json!(0)],
            "number" => vec![json!(0.5), json!(-2.0)],
            // Not the name of a variant, so it is an unknown type if it is a tag.
            "string" => vec![json!("_\"other\"\n"), json!("")],
            "array" => {
                let items = self.samples(schema.get("items").unwrap_or(&Value::Bool(true)));
                items
                    .iter()
                    .map(|item| json!([item, item]))
                    .chain([json!([])])
                    .collect()
            }
            "object" => {
                let mut objects = vec![json!({})];
                for (key, property) in schema
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                {
                    let with_key: Vec<_> = self
                        .samples(property)
                        .into_iter()
                        .map(|value| json!({key: value}))
                        .collect();
                    objects = combine(&objects, &with_key);
                }
                if let Some(values @ Value::Object(_)) = schema.get("additionalProperties") {
                    let entries: Vec<_> = self
                        .samples(values)
                        .into_iter()
                        .map(|value| json!({"entry": value}))
                        .collect();
                    objects = combine(&objects, &entries);
                }
                objects
            }
            other => panic!("a type without samples: {other}"),
        }
    }
}

/// Merges the values of `a` and `b` pairwise, so that each occurs at least once. Merging every possible pair would
/// produce too many.
fn combine(a: &[Value], b: &[Value]) -> Vec<Value> {
    let merge = |a: &Value, b: &Value| match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            // `a` is more precise: `b` may be the definition that `a` restricts.
            Value::Object(
                b.iter()
                    .chain(a)
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect(),
            )
        }
        (a, _) => a.clone(),
    };
    (0..a.len().max(b.len()))
        .map(|i| merge(&a[i % a.len()], &b[i % b.len()]))
        .collect()
}
