//! Tests of form fields: how they are described, and how answers are parsed.

use acp::v1::{ElicitationContentValue as Value, ElicitationSchema};
use acp_host::elicitation::{FieldAnswer, FormField, FormFieldKind};

fn parse_form(json: &str) -> ElicitationSchema {
    serde_json::from_str(json).unwrap()
}

#[test]
fn answers_are_parsed_or_explained() {
    let form = parse_form(
        r#"{"type": "object", "required": ["name", "colors"], "properties": {
            "age": {"type": "integer", "minimum": 18, "maximum": 99, "default": 42},
            "color": {"type": "string", "oneOf": [
                {"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
            "colors": {"type": "array", "items": {"type": "string", "enum": ["r", "g", "b"]}, "maxItems": 2},
            "name": {"type": "string", "title": "Full name", "minLength": 2, "pattern": "^[A-Z]"},
            "share": {"type": "number"},
            "sure": {"type": "boolean", "default": false},
            "odd": {"type": "object"}
        }}"#,
    );
    let fields = FormField::from_schema(&form).unwrap();
    let names: Vec<&str> = fields.iter().map(FormField::name).collect();
    assert_eq!(names, ["age", "color", "colors", "name", "share", "sure"]);
    let field = |name: &str| fields.iter().find(|field| field.name() == name).unwrap();
    let value = |name: &str, answer: &str| {
        field(name)
            .parse_line(answer)
            .map_err(|unfit| unfit.to_string())
    };
    let text = |text: &str| Ok(FieldAnswer::Value(Value::String(text.to_owned())));
    let texts = |texts: &[&str]| {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Ok(FieldAnswer::Value(Value::StringArray(texts)))
    };

    assert_eq!(value("name", "Ada"), text("Ada"));
    assert_eq!(value("name", ""), Ok(FieldAnswer::Omitted));
    for wrong in ["A", "ada"] {
        value("name", wrong).unwrap_err();
    }
    assert_eq!(
        value("age", "18"),
        Ok(FieldAnswer::Value(Value::Integer(18)))
    );
    assert_eq!(value("age", ""), Ok(FieldAnswer::Value(Value::Integer(42))));
    assert_eq!(value("age", "17"), Err("Must be 18 to 99.".to_owned()));
    value("age", "18.5").unwrap_err();
    assert_eq!(
        value("share", "0.5"),
        Ok(FieldAnswer::Value(Value::Number(0.5)))
    );
    value("share", "inf").unwrap_err();
    for green in ["2", "g", "Green"] {
        assert_eq!(value("color", green), text("g"));
    }
    for wrong in ["0", "3", "blue"] {
        value("color", wrong).unwrap_err();
    }
    assert_eq!(value("colors", "3, 1,3"), texts(&["b", "r"]));
    value("colors", "1,2,3").unwrap_err();
    assert_eq!(
        value("sure", "Yes"),
        Ok(FieldAnswer::Value(Value::Boolean(true)))
    );
    assert_eq!(
        value("sure", ""),
        Ok(FieldAnswer::Value(Value::Boolean(false)))
    );

    assert_eq!(field("age").prompt(), "age (optional, 18 to 99) [42]");
    assert_eq!(field("name").prompt(), "Full name (2 or more characters)");
    assert_eq!(
        field("color").description_lines(),
        ["  1) Red", "  2) Green"]
    );
}

#[test]
fn required_field_of_unknown_type_is_reported() {
    for properties in ["{}", r#"{"x": {"type": "object"}}"#] {
        let json =
            format!(r#"{{"type": "object", "required": ["x"], "properties": {properties}}}"#);
        let form = parse_form(&json);
        let why = FormField::from_schema(&form).unwrap_err().to_string();
        assert!(why.contains("field x"), "{why}");
    }
}

#[test]
fn values_are_checked_like_typed_answers() {
    let form = parse_form(
        r#"{"type": "object", "properties": {
            "colors": {"type": "array", "items": {"anyOf": [
                {"const": "r", "title": "Red"}, {"const": "g", "title": "Gr\u001b[1meen"}]}, "minItems": 1},
            "key": {"type": "string", "format": "password", "maxLength": 4},
            "port": {"type": "integer", "maximum": 65535},
            "sure": {"type": "boolean", "title": "Sure\u001b]0;x\u0007?", "description": "Are\nyou?"}
        }}"#,
    );
    let fields = FormField::from_schema(&form).unwrap();
    let kinds: Vec<FormFieldKind> = fields.iter().map(FormField::kind).collect();
    use FormFieldKind::{Boolean, Integer, MultipleChoice, Secret};
    assert_eq!(kinds, [MultipleChoice, Secret, Integer, Boolean]);
    let [colors, key, port, sure] = &fields[..] else {
        panic!("{fields:?}")
    };
    let some = |values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Value::StringArray(values)
    };
    colors.check(&some(&["g", "r"])).unwrap();
    let why = |unfit: acp_host::elicitation::InvalidAnswer| unfit.to_string();
    assert_eq!(
        colors.check(&some(&[])).map_err(why),
        Err("Choose at least 1.".to_owned())
    );
    assert_eq!(
        colors.check(&some(&["b"])).map_err(why),
        Err("`b` is not one of the choices.".to_owned())
    );
    colors.check(&Value::Boolean(true)).unwrap_err();
    assert_eq!(
        colors.format_value(&some(&["g", "r"])),
        r"Gr\u{1b}[1meen, Red"
    );
    assert_eq!(
        colors.describe_bounds().as_deref(),
        Option::Some("choose 1 or more")
    );
    key.parse("12345").unwrap_err();
    assert_eq!(port.parse(" 80 "), Ok(Value::Integer(80)));
    port.parse("65536").unwrap_err();
    assert_eq!(
        port.describe_bounds().as_deref(),
        Option::Some("at most 65535")
    );
    assert_eq!(sure.parse("yes"), Ok(Value::Boolean(true)));
    assert_eq!(sure.label(), r"Sure\u{1b}]0;x\u{7}?");
    assert_eq!(sure.description(), "Are\nyou?");
}
