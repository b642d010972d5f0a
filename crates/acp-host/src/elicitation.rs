//! Elicitation forms: their fields, the prompts for the user, and input validation.
//!
//! Texts for the user are already escaped by [`literal`]. Names and values are passed on unchanged.

use acp_wire::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Schema, ElicitationSchema,
    EnumOption, MultiSelectItems, MultiSelectPropertySchema, StringPropertySchema,
};
use regex::RegexBuilder;

use crate::literal;

/// The maximum compiled size of a pattern from the agent, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// A field of an elicitation form, for the user to fill in.
#[derive(Debug, Clone)]
pub struct FormField {
    name: String,
    is_required: bool,
    schema: Schema,
    choices: Vec<FieldChoice>,
}

/// One of the values that the user can choose for a field, with its title.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldChoice {
    /// The value that is sent to the agent.
    pub value: String,
    /// The title shown to the user.
    pub title: String,
    /// The agent's description of the choice, if there is one.
    pub description: Option<String>,
}

/// The kind of value that a form field accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormFieldKind {
    /// Free-form text.
    Text,
    /// Text that must be hidden (the format `password`).
    Secret,
    /// A number, which may have a fraction.
    Number,
    /// A whole number.
    Integer,
    /// A boolean: yes or no.
    Boolean,
    /// Exactly one of several choices.
    SingleChoice,
    /// Any number of choices.
    MultipleChoice,
}

/// The user's answer to one field of a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldAnswer {
    /// A value to send to the agent.
    Value(Value),
    /// No value. The field is omitted from the response.
    Omitted,
}

/// The reason why a form cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// A required field has no schema. Contains the field's name.
    #[error("the form has no schema for the required field {0}")]
    MissingField(String),
    /// A required field has an unknown type or no choices. Contains the field's name.
    #[error("the required field {0} has an unknown type or no choices")]
    UnknownType(String),
}

/// An error that explains to the user why an answer is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidAnswer(String);

impl FormField {
    /// Returns the fields of a form, in order. Skips optional fields of unknown type.
    ///
    /// # Errors
    /// A required field cannot be shown.
    pub fn from_schema(form: &ElicitationSchema) -> Result<Vec<Self>, FormError> {
        let required = form.required.as_deref().unwrap_or_default();
        if let Some(name) = required.iter().find(|n| !form.properties.contains_key(*n)) {
            return Err(FormError::MissingField(literal::escape_line(name)));
        }
        let mut fields = Vec::new();
        for (name, schema) in &form.properties {
            let required = required.contains(name);
            match Self::new(name, schema, required) {
                Some(field) => fields.push(field),
                None if required => {
                    return Err(FormError::UnknownType(literal::escape_line(name)));
                }
                None => {}
            }
        }
        Ok(fields)
    }

    /// Creates a field from its schema. Returns `None` if the field's type is unknown.
    fn new(name: &str, schema: &Schema, required: bool) -> Option<Self> {
        let choices = match schema {
            Schema::String(string) => string_choices(string),
            Schema::Array(array) => array_choices(array)?,
            Schema::Number(_) | Schema::Integer(_) | Schema::Boolean(_) => Vec::new(),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            is_required: required,
            schema: schema.clone(),
            choices,
        })
    }

    /// Returns the field's name in the response.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the form cannot be sent without this field.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// Returns the kind of value that the field accepts.
    #[must_use]
    pub fn kind(&self) -> FormFieldKind {
        match &self.schema {
            Schema::String(_) if !self.choices.is_empty() => FormFieldKind::SingleChoice,
            Schema::String(s) => match &s.format {
                Some(format) if format.as_str() == "password" => FormFieldKind::Secret,
                _ => FormFieldKind::Text,
            },
            Schema::Number(_) => FormFieldKind::Number,
            Schema::Integer(_) => FormFieldKind::Integer,
            Schema::Boolean(_) => FormFieldKind::Boolean,
            // `new` accepts no other types of schema.
            _ => FormFieldKind::MultipleChoice,
        }
    }

    /// Returns the field's choices, if any. Values and titles are not escaped.
    #[must_use]
    pub fn choices(&self) -> &[FieldChoice] {
        &self.choices
    }

    /// Returns the field's title as a single line to show to the user.
    #[must_use]
    pub fn label(&self) -> String {
        let title = match &self.schema {
            Schema::String(s) => &s.title,
            Schema::Number(s) => &s.title,
            Schema::Integer(s) => &s.title,
            Schema::Boolean(s) => &s.title,
            Schema::Array(s) => &s.title,
            _ => &None,
        };
        literal::escape_line(title.as_deref().unwrap_or(&self.name))
    }

    /// Returns the field's description, which may span several lines. Empty if there is none.
    #[must_use]
    pub fn description(&self) -> String {
        let description = match &self.schema {
            Schema::String(s) => &s.description,
            Schema::Number(s) => &s.description,
            Schema::Integer(s) => &s.description,
            Schema::Boolean(s) => &s.description,
            Schema::Array(s) => &s.description,
            _ => &None,
        };
        match description.as_deref().unwrap_or_default().trim_end() {
            "" => String::new(),
            text => literal::escape_lines(text).join("\n"),
        }
    }

    /// Describes the valid values in a few words, such as `18 to 99`. Returns `None` if all values are valid.
    #[must_use]
    pub fn describe_bounds(&self) -> Option<String> {
        match &self.schema {
            Schema::String(_) if !self.choices.is_empty() => None,
            Schema::String(s) => {
                let format = s
                    .format
                    .as_ref()
                    .map(|format| literal::escape_line(format.as_str()));
                let length =
                    describe_range(s.min_length, s.max_length).map(|n| format!("{n} characters"));
                let bounds: Vec<String> = format.into_iter().chain(length).collect();
                (!bounds.is_empty()).then(|| bounds.join(", "))
            }
            Schema::Number(s) => describe_range(s.minimum, s.maximum),
            Schema::Integer(s) => describe_range(s.minimum, s.maximum),
            Schema::Array(s) => {
                describe_range(s.min_items, s.max_items).map(|n| format!("choose {n}"))
            }
            _ => None,
        }
    }

    /// Returns the field's default value, if the form gives one.
    #[must_use]
    pub fn default(&self) -> Option<Value> {
        match &self.schema {
            Schema::String(s) => s.default.clone().map(Value::String),
            Schema::Number(s) => s.default.map(Value::Number),
            Schema::Integer(s) => s.default.map(Value::Integer),
            Schema::Boolean(s) => s.default.map(Value::Boolean),
            Schema::Array(s) => s.default.clone().map(Value::StringArray),
            _ => None,
        }
    }

    /// Formats one of the field's values for the user.
    #[must_use]
    pub fn format_value(&self, value: &Value) -> String {
        let title = |value: &String| {
            let known = self.choices.iter().find(|choice| choice.value == *value);
            known.map_or(value, |choice| &choice.title).clone()
        };
        let text = match value {
            Value::String(value) => title(value),
            Value::Integer(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::Boolean(value) => if *value { "y" } else { "n" }.to_owned(),
            Value::StringArray(values) => {
                let titles: Vec<String> = values.iter().map(title).collect();
                titles.join(", ")
            }
            // A field has no other types of values.
            _ => String::new(),
        };
        literal::escape_line(&text)
    }

    /// Returns the lines to show above the field's prompt: its description and choices.
    #[must_use]
    pub fn description_lines(&self) -> Vec<String> {
        let description = self.description();
        let mut lines: Vec<String> = description.lines().map(str::to_owned).collect();
        for (n, choice) in self.choices.iter().enumerate() {
            let about = choice.description.as_ref();
            let about = about.map(|about| format!(" - {about}"));
            let line = format!("{}{}", choice.title, about.unwrap_or_default());
            lines.push(format!("  {}) {}", n + 1, literal::escape_line(&line)));
        }
        lines
    }

    /// Returns the prompt for the field: its title, the valid values, and the default.
    #[must_use]
    pub fn prompt(&self) -> String {
        let mut hints: Vec<String> = Vec::new();
        if !self.is_required {
            hints.push("optional".to_owned());
        }
        match self.kind() {
            FormFieldKind::SingleChoice => hints.push(format!("1-{}", self.choices.len())),
            FormFieldKind::Boolean => hints.push("y/n".to_owned()),
            FormFieldKind::MultipleChoice => hints.push("numbers separated by commas".to_owned()),
            _ => {}
        }
        hints.extend(self.describe_bounds());
        let mut prompt = self.label();
        if !hints.is_empty() {
            prompt.push_str(&format!(" ({})", hints.join(", ")));
        }
        if let Some(default) = self.default() {
            prompt.push_str(&format!(" [{}]", self.format_value(&default)));
        }
        prompt
    }

    /// Parses a line that the user entered at the [prompt](Self::prompt). An empty line selects the default. A choice
    /// can be entered as its number, value or title.
    ///
    /// # Errors
    /// The line is not a valid value for the field.
    pub fn parse_line(&self, answer: &str) -> Result<FieldAnswer, InvalidAnswer> {
        if answer.is_empty() {
            return Ok(self
                .default()
                .map_or(FieldAnswer::Omitted, FieldAnswer::Value));
        }
        let value = match self.kind() {
            FormFieldKind::SingleChoice => Value::String(self.resolve_choice(answer)?.to_owned()),
            FormFieldKind::MultipleChoice => {
                let mut values: Vec<String> = Vec::new();
                let parts = answer.split(',').map(str::trim);
                for part in parts.filter(|part| !part.is_empty()) {
                    let value = self.resolve_choice(part)?;
                    if !values.iter().any(|known| known == value) {
                        values.push(value.to_owned());
                    }
                }
                Value::StringArray(values)
            }
            _ => return self.parse(answer).map(FieldAnswer::Value),
        };
        self.check(&value)?;
        Ok(FieldAnswer::Value(value))
    }

    /// Parses text entered into the field. For a boolean, the text is a word such as `yes`.
    ///
    /// # Errors
    /// The text is not a valid value for the field.
    pub fn parse(&self, text: &str) -> Result<Value, InvalidAnswer> {
        let number = || text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let unfit = |why: &str| InvalidAnswer(why.to_owned());
        let value = match self.kind() {
            FormFieldKind::Text | FormFieldKind::Secret | FormFieldKind::SingleChoice => {
                Value::String(text.to_owned())
            }
            FormFieldKind::Number => {
                Value::Number(number().ok_or_else(|| unfit("Enter a number."))?)
            }
            FormFieldKind::Integer => {
                Value::Integer((text.trim().parse()).map_err(|_| unfit("Enter a whole number."))?)
            }
            FormFieldKind::Boolean => {
                Value::Boolean(parse_yes_no(text).ok_or_else(|| unfit("Enter y or n."))?)
            }
            FormFieldKind::MultipleChoice => Value::StringArray(vec![text.to_owned()]),
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Checks that a value is valid for the field.
    ///
    /// # Errors
    /// The value is not valid.
    pub fn check(&self, value: &Value) -> Result<(), InvalidAnswer> {
        match (&self.schema, value) {
            (Schema::String(_), Value::String(value)) if !self.choices.is_empty() => {
                self.check_choice(value)
            }
            (Schema::String(schema), Value::String(text)) => check_text(schema, text),
            (Schema::Number(schema), Value::Number(number)) => {
                check_range(*number, schema.minimum, schema.maximum)
            }
            (Schema::Integer(schema), Value::Integer(number)) => {
                check_range(*number, schema.minimum, schema.maximum)
            }
            (Schema::Boolean(_), Value::Boolean(_)) => Ok(()),
            (Schema::Array(schema), Value::StringArray(values)) => {
                let chosen = u64::try_from(values.len()).unwrap_or(u64::MAX);
                if let Some(min) = schema.min_items.filter(|min| chosen < *min) {
                    return Err(InvalidAnswer(format!("Choose at least {min}.")));
                }
                if let Some(max) = schema.max_items.filter(|max| chosen > *max) {
                    return Err(InvalidAnswer(format!("Choose at most {max}.")));
                }
                values.iter().try_for_each(|value| self.check_choice(value))
            }
            _ => Err(InvalidAnswer("The value has the wrong type.".to_owned())),
        }
    }

    fn check_choice(&self, value: &str) -> Result<(), InvalidAnswer> {
        let known = self.choices.iter().any(|choice| choice.value == value);
        let value = literal::escape_line(value);
        known
            .then_some(())
            .ok_or_else(|| InvalidAnswer(format!("`{value}` is not one of the choices.")))
    }

    /// Returns the value of the choice with this number, value or title.
    fn resolve_choice(&self, answer: &str) -> Result<&str, InvalidAnswer> {
        let number = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let by_number = number.and_then(|n| self.choices.get(n));
        let mut choices = self.choices.iter();
        let named = || choices.find(|choice| choice.value == answer || choice.title == answer);
        let choice = by_number.or_else(named);
        choice.map(|choice| choice.value.as_str()).ok_or_else(|| {
            InvalidAnswer(format!(
                "`{}` is not a choice. Enter a number from 1 to {}.",
                literal::escape_line(answer),
                self.choices.len()
            ))
        })
    }
}

fn string_choices(schema: &StringPropertySchema) -> Vec<FieldChoice> {
    let titled = schema.one_of.as_deref().unwrap_or_default();
    let plain = schema.enum_values.as_deref().unwrap_or_default();
    if titled.is_empty() {
        plain_choices(plain)
    } else {
        titled_choices(titled)
    }
}

/// Returns the choices of a multiple-choice field. Returns `None` if their type is unknown or there are no choices.
fn array_choices(schema: &MultiSelectPropertySchema) -> Option<Vec<FieldChoice>> {
    let choices = match &schema.items {
        MultiSelectItems::Strings(items) => plain_choices(&items.values),
        MultiSelectItems::Titled(items) => titled_choices(&items.options),
        _ => return None,
    };
    (!choices.is_empty()).then_some(choices)
}

fn plain_choices(values: &[String]) -> Vec<FieldChoice> {
    let choice = |value: &String| FieldChoice {
        value: value.clone(),
        title: value.clone(),
        description: None,
    };
    values.iter().map(choice).collect()
}

fn titled_choices(options: &[EnumOption]) -> Vec<FieldChoice> {
    let choice = |option: &EnumOption| FieldChoice {
        value: option.value.clone(),
        title: option.title.clone(),
        description: option.description.clone(),
    };
    options.iter().map(choice).collect()
}

fn check_text(schema: &StringPropertySchema, text: &str) -> Result<(), InvalidAnswer> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if let Some(min) = schema.min_length.filter(|min| length < *min) {
        return Err(InvalidAnswer(format!(
            "Too short: the minimum length is {min}."
        )));
    }
    if let Some(max) = schema.max_length.filter(|max| length > *max) {
        return Err(InvalidAnswer(format!(
            "Too long: the maximum length is {max}."
        )));
    }
    let Some(pattern) = &schema.pattern else {
        return Ok(());
    };
    // The agent has to check patterns that this engine does not support.
    let regex = RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN_BYTES)
        .build();
    match regex {
        Ok(regex) if !regex.is_match(text) => {
            let pattern = literal::escape_line(pattern);
            Err(InvalidAnswer(format!("Must match the pattern {pattern}.")))
        }
        _ => Ok(()),
    }
}

fn describe_range<T: ToString>(min: Option<T>, max: Option<T>) -> Option<String> {
    let (min, max) = (min.map(|n| n.to_string()), max.map(|n| n.to_string()));
    match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("{min} or more")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    }
}

fn check_range<T: PartialOrd + ToString + Copy>(
    number: T,
    min: Option<T>,
    max: Option<T>,
) -> Result<(), InvalidAnswer> {
    let fits = min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
    let range = describe_range(min, max).unwrap_or_default();
    fits.then_some(())
        .ok_or_else(|| InvalidAnswer(format!("Must be {range}.")))
}

/// Parses a word for yes or no, such as `y`, `no` or `true`.
#[must_use]
pub fn parse_yes_no(answer: &str) -> Option<bool> {
    match answer.to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}
