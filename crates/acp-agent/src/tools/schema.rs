//! Generates JSON Schemas for tool parameters, to send to models.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Schema keywords that models don't need or that some providers reject.
const OMITTED_KEYWORDS: [&str; 4] = ["$schema", "title", "format", "$ref"];

/// Returns the JSON Schema of a tool's parameters. It contains no references.
pub(crate) fn parameter_schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    clean_schema(&mut schema);
    schema
}

/// Removes the omitted keywords at every depth, but keeps properties with those names.
fn clean_schema(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(clean_schema),
        Value::Object(keywords) => {
            keywords.retain(|keyword, _| !OMITTED_KEYWORDS.contains(&keyword.as_str()));
            for (keyword, value) in keywords.iter_mut() {
                match (keyword.as_str(), value) {
                    ("properties" | "patternProperties", Value::Object(named)) => {
                        named.values_mut().for_each(clean_schema);
                    }
                    // Doc comments are wrapped in the source, but a model gets each as a single line.
                    ("description", Value::String(text)) => *text = text.replace('\n', " "),
                    // These keywords contain values, not schemas.
                    ("default" | "const" | "enum" | "examples" | "required", _) => {}
                    (_, value) => clean_schema(value),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// How something ends.
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Ending {
        /// How long it may take,
        /// in seconds.
        seconds: Option<u32>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Parameters {
        title: String,
        format: u32,
        first: Ending,
        second: Ending,
    }

    #[test]
    fn unneeded_keywords_are_removed_and_property_names_kept() {
        let schema = parameter_schema::<Parameters>();
        let properties = &schema["properties"];
        assert_eq!(properties["title"], json!({"type": "string"}));
        assert_eq!(properties["format"]["type"], "integer");
        assert_eq!(
            properties["first"]["properties"],
            properties["second"]["properties"]
        );
        let seconds = &properties["first"]["properties"]["seconds"];
        assert_eq!(seconds["description"], "How long it may take, in seconds.");
        for keyword in ["$schema", "$ref", "$defs", "\"title\":\"", "\"format\":\""] {
            let text = schema.to_string();
            assert!(!text.contains(keyword), "{keyword} in {text}");
        }
    }
}
