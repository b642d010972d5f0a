//! A field of a form: how it is asked, and what an answer means.

use acp::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Schema, ElicitationSchema,
    EnumOption, MultiSelectItems, MultiSelectPropertySchema, StringPropertySchema,
};
use acp_host::clean;
use regex::RegexBuilder;

/// How large a pattern of the agent's may become, in bytes.
const PATTERN: usize = 1024 * 1024;

/// A field of a form.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) required: bool,
    schema: &'a Schema,
    /// What there is to choose from, if that is how it is filled in.
    choices: Vec<Choice<'a>>,
}

struct Choice<'a> {
    value: &'a str,
    title: &'a str,
    description: Option<&'a str>,
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(super) enum Given {
    Value(Value),
    Nothing,
}

impl<'a> Field<'a> {
    /// The fields of a form, in its order. What is optional and of a type unknown here is left out.
    ///
    /// # Errors
    /// A field that is required cannot be asked here; the text names it.
    pub(super) fn of(form: &'a ElicitationSchema) -> Result<Vec<Self>, String> {
        let required = form.required.as_deref().unwrap_or_default();
        if let Some(name) = required.iter().find(|n| !form.properties.contains_key(*n)) {
            return Err(format!("the field {name} is required and not described"));
        }
        let mut fields = Vec::new();
        for (name, schema) in &form.properties {
            let required = required.contains(name);
            match Self::new(name, schema, required) {
                Some(field) => fields.push(field),
                None if required => return Err(format!("the field {name} is of an unknown type")),
                None => {}
            }
        }
        Ok(fields)
    }

    /// `None` for a type unknown here.
    fn new(name: &'a str, schema: &'a Schema, required: bool) -> Option<Self> {
        let choices = match schema {
            Schema::String(string) => string_choices(string),
            Schema::Array(array) => array_choices(array)?,
            Schema::Number(_) | Schema::Integer(_) | Schema::Boolean(_) => Vec::new(),
            _ => return None,
        };
        Some(Self {
            name,
            required,
            schema,
            choices,
        })
    }

    /// What is said of it before it is asked: what it is, and what there is to choose from.
    pub(super) fn about(&self) -> Vec<String> {
        let description = match self.schema {
            Schema::String(s) => &s.description,
            Schema::Number(s) => &s.description,
            Schema::Integer(s) => &s.description,
            Schema::Boolean(s) => &s.description,
            Schema::Array(s) => &s.description,
            _ => &None,
        };
        let description = clean::clean(description.as_deref().unwrap_or_default());
        let mut lines: Vec<String> = description.lines().map(str::to_owned).collect();
        for (n, choice) in self.choices.iter().enumerate() {
            let about = choice.description.map(|about| format!(" - {about}"));
            let line = format!("{}{}", choice.title, about.unwrap_or_default());
            lines.push(format!("  {}) {}", n + 1, clean::line(&line)));
        }
        lines
    }

    /// Its name for people, what it can be, and what it is if nothing is typed.
    pub(super) fn prompt(&self) -> String {
        let title = match self.schema {
            Schema::String(s) => &s.title,
            Schema::Number(s) => &s.title,
            Schema::Integer(s) => &s.title,
            Schema::Boolean(s) => &s.title,
            Schema::Array(s) => &s.title,
            _ => &None,
        };
        let mut hints: Vec<String> = Vec::new();
        if !self.required {
            hints.push("optional".to_owned());
        }
        match self.schema {
            Schema::String(_) if !self.choices.is_empty() => {
                hints.push(format!("1-{}", self.choices.len()));
            }
            Schema::String(s) => {
                hints.extend(s.format.as_ref().map(|format| format.as_str().to_owned()));
            }
            Schema::Number(s) => hints.extend(between(s.minimum, s.maximum)),
            Schema::Integer(s) => hints.extend(between(s.minimum, s.maximum)),
            Schema::Boolean(_) => hints.push("y/n".to_owned()),
            Schema::Array(_) => hints.push("numbers with commas between them".to_owned()),
            _ => {}
        }
        let mut prompt = title.as_deref().unwrap_or(self.name).to_owned();
        if !hints.is_empty() {
            prompt.push_str(&format!(" ({})", hints.join(", ")));
        }
        if let Some(default) = self.default() {
            prompt.push_str(&format!(" [{}]", self.show(&default)));
        }
        clean::line(&prompt)
    }

    /// What it is if nothing is typed.
    fn default(&self) -> Option<Value> {
        match self.schema {
            Schema::String(s) => s.default.clone().map(Value::String),
            Schema::Number(s) => s.default.map(Value::Number),
            Schema::Integer(s) => s.default.map(Value::Integer),
            Schema::Boolean(s) => s.default.map(Value::Boolean),
            Schema::Array(s) => s.default.clone().map(Value::StringArray),
            _ => None,
        }
    }

    fn show(&self, value: &Value) -> String {
        let title = |value: &String| {
            let known = self.choices.iter().find(|choice| choice.value == value);
            known
                .map_or(value.as_str(), |choice| choice.title)
                .to_owned()
        };
        match value {
            Value::String(value) => title(value),
            Value::Integer(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::Boolean(value) => if *value { "y" } else { "n" }.to_owned(),
            Value::StringArray(values) => {
                let titles: Vec<String> = values.iter().map(title).collect();
                titles.join(", ")
            }
            // No field here has such a value.
            _ => String::new(),
        }
    }

    /// What `answer` means.
    ///
    /// # Errors
    /// It is nothing that the field can be; the text says why.
    pub(super) fn read(&self, answer: &str) -> Result<Given, String> {
        if answer.is_empty() {
            return Ok(self.default().map_or(Given::Nothing, Given::Value));
        }
        let value = match self.schema {
            Schema::String(_) if !self.choices.is_empty() => {
                Value::String(self.choice(answer)?.to_owned())
            }
            Schema::String(schema) => {
                check_text(schema, answer)?;
                Value::String(answer.to_owned())
            }
            Schema::Number(schema) => {
                let number: f64 = answer.parse().map_err(|_| "That is no number.")?;
                if !number.is_finite() {
                    return Err("That is no number.".to_owned());
                }
                check_between(number, schema.minimum, schema.maximum)?;
                Value::Number(number)
            }
            Schema::Integer(schema) => {
                let number: i64 = answer.parse().map_err(|_| "That is no whole number.")?;
                check_between(number, schema.minimum, schema.maximum)?;
                Value::Integer(number)
            }
            Schema::Boolean(_) => Value::Boolean(yes_or_no(answer).ok_or("Answer with y or n.")?),
            Schema::Array(schema) => Value::StringArray(self.some(schema, answer)?),
            _ => return Ok(Given::Nothing),
        };
        Ok(Given::Value(value))
    }

    /// The value of the choice with this number, value or title.
    fn choice(&self, answer: &str) -> Result<&'a str, String> {
        let number = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let by_number = number.and_then(|n| self.choices.get(n));
        let mut choices = self.choices.iter();
        let named = || choices.find(|choice| choice.value == answer || choice.title == answer);
        by_number
            .or_else(named)
            .map(|choice| choice.value)
            .ok_or_else(|| format!("`{answer}` is none of 1 to {}.", self.choices.len()))
    }

    /// The values of several choices.
    fn some(
        &self,
        schema: &MultiSelectPropertySchema,
        answer: &str,
    ) -> Result<Vec<String>, String> {
        let mut values: Vec<String> = Vec::new();
        for part in answer
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let value = self.choice(part)?;
            if !values.iter().any(|known| known == value) {
                values.push(value.to_owned());
            }
        }
        let chosen = u64::try_from(values.len()).unwrap_or(u64::MAX);
        if schema.min_items.is_some_and(|min| chosen < min) {
            return Err(format!(
                "Choose {} at least.",
                schema.min_items.unwrap_or_default()
            ));
        }
        if schema.max_items.is_some_and(|max| chosen > max) {
            return Err(format!(
                "Choose {} at most.",
                schema.max_items.unwrap_or_default()
            ));
        }
        Ok(values)
    }
}

fn string_choices(schema: &StringPropertySchema) -> Vec<Choice<'_>> {
    let titled = schema.one_of.as_deref().unwrap_or_default();
    let plain = schema.enum_values.as_deref().unwrap_or_default();
    if titled.is_empty() {
        plain_choices(plain)
    } else {
        titled_choices(titled)
    }
}

/// `None` for a type unknown here, and if there is nothing to choose from.
fn array_choices(schema: &MultiSelectPropertySchema) -> Option<Vec<Choice<'_>>> {
    let choices = match &schema.items {
        MultiSelectItems::Strings(items) => plain_choices(&items.values),
        MultiSelectItems::Titled(items) => titled_choices(&items.options),
        _ => return None,
    };
    (!choices.is_empty()).then_some(choices)
}

fn plain_choices(values: &[String]) -> Vec<Choice<'_>> {
    let choice = |value| Choice {
        value,
        title: value,
        description: None,
    };
    values.iter().map(|value| choice(value.as_str())).collect()
}

fn titled_choices(options: &[EnumOption]) -> Vec<Choice<'_>> {
    let choice = |option| {
        let EnumOption {
            value,
            title,
            description,
            ..
        }: &EnumOption = option;
        Choice {
            value,
            title,
            description: description.as_deref(),
        }
    };
    options.iter().map(choice).collect()
}

fn check_text(schema: &StringPropertySchema, text: &str) -> Result<(), String> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if let Some(min) = schema.min_length.filter(|min| length < *min) {
        return Err(format!("That is too short: {min} characters at least."));
    }
    if let Some(max) = schema.max_length.filter(|max| length > *max) {
        return Err(format!("That is too long: {max} characters at most."));
    }
    let Some(pattern) = &schema.pattern else {
        return Ok(());
    };
    // One that is not understood here is for the agent to check.
    let regex = RegexBuilder::new(pattern).size_limit(PATTERN).build();
    match regex {
        Ok(regex) if !regex.is_match(text) => {
            Err(format!("It must match {}.", clean::line(pattern)))
        }
        _ => Ok(()),
    }
}

fn between<T: ToString>(min: Option<T>, max: Option<T>) -> Option<String> {
    let (min, max) = (min.map(|n| n.to_string()), max.map(|n| n.to_string()));
    match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("{min} or more")),
        (None, Some(max)) => Some(format!("{max} or less")),
        (None, None) => None,
    }
}

fn check_between<T: PartialOrd + ToString + Copy>(
    number: T,
    min: Option<T>,
    max: Option<T>,
) -> Result<(), String> {
    let fits = min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
    let range = between(min, max).unwrap_or_default();
    fits.then_some(())
        .ok_or_else(|| format!("It must be {range}."))
}

/// Yes or no, as people type it.
pub(super) fn yes_or_no(answer: &str) -> Option<bool> {
    match answer.to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(json: &str) -> ElicitationSchema {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn answers_are_what_the_field_says_or_why_not() {
        let form = form(
            r#"{"type": "object", "required": ["name", "colours"], "properties": {
                "age": {"type": "integer", "minimum": 18, "maximum": 99, "default": 42},
                "colour": {"type": "string", "oneOf": [
                    {"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
                "colours": {"type": "array", "items": {"type": "string", "enum": ["r", "g", "b"]}, "maxItems": 2},
                "name": {"type": "string", "title": "Full name", "minLength": 2, "pattern": "^[A-Z]"},
                "share": {"type": "number"},
                "sure": {"type": "boolean", "default": false},
                "odd": {"type": "object"}
            }}"#,
        );
        let fields = Field::of(&form).unwrap();
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        assert_eq!(names, ["age", "colour", "colours", "name", "share", "sure"]);
        let field = |name: &str| fields.iter().find(|field| field.name == name).unwrap();
        let value = |name: &str, answer: &str| field(name).read(answer);
        let text = |text: &str| Ok(Given::Value(Value::String(text.to_owned())));
        let texts = |texts: &[&str]| {
            let texts = texts.iter().map(|text| (*text).to_owned()).collect();
            Ok(Given::Value(Value::StringArray(texts)))
        };

        assert_eq!(value("name", "Ada"), text("Ada"));
        assert_eq!(value("name", ""), Ok(Given::Nothing));
        for wrong in ["A", "ada"] {
            value("name", wrong).unwrap_err();
        }
        assert_eq!(value("age", "18"), Ok(Given::Value(Value::Integer(18))));
        assert_eq!(value("age", ""), Ok(Given::Value(Value::Integer(42))));
        assert_eq!(value("age", "17"), Err("It must be 18 to 99.".to_owned()));
        value("age", "18.5").unwrap_err();
        assert_eq!(value("share", "0.5"), Ok(Given::Value(Value::Number(0.5))));
        value("share", "inf").unwrap_err();
        for green in ["2", "g", "Green"] {
            assert_eq!(value("colour", green), text("g"));
        }
        for wrong in ["0", "3", "blue"] {
            value("colour", wrong).unwrap_err();
        }
        assert_eq!(value("colours", "3, 1,3"), texts(&["b", "r"]));
        value("colours", "1,2,3").unwrap_err();
        assert_eq!(value("sure", "Yes"), Ok(Given::Value(Value::Boolean(true))));
        assert_eq!(value("sure", ""), Ok(Given::Value(Value::Boolean(false))));

        assert_eq!(field("age").prompt(), "age (optional, 18 to 99) [42]");
        assert_eq!(field("name").prompt(), "Full name");
        assert_eq!(field("colour").about(), ["  1) Red", "  2) Green"]);
    }

    #[test]
    fn what_is_required_and_cannot_be_asked_is_named() {
        for properties in ["{}", r#"{"x": {"type": "object"}}"#] {
            let json =
                format!(r#"{{"type": "object", "required": ["x"], "properties": {properties}}}"#);
            let form = form(&json);
            let why = Field::of(&form).err().unwrap();
            assert!(why.contains("field x"), "{why}");
        }
    }
}
