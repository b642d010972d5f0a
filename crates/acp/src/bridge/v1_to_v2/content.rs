//! Translates tool call content from version 1 to version 2.

use acp_wire::RawObject;
use acp_wire::v1::ContentBlock;
use serde_json::value::RawValue;

use super::super::diff;
use super::super::json::{list_items, to_object, to_raw_value};

/// Removes all `null` members. They have no meaning in version 1, but in version 2 they would clear a field.
pub(super) fn remove_nulls(mut object: RawObject) -> RawObject {
    object.retain(|_, value| value.get() != "null");
    object
}

/// Translates the content of a tool call to version 2, item by item.
pub(super) fn content_to_v2(call: &mut RawObject) {
    if !call.has("content") {
        return;
    }
    let content: Vec<Box<RawValue>> = list_items(call, "content")
        .into_iter()
        .map(|item| {
            let read = to_object(Some(&item));
            match read.field::<String>("type").as_deref() {
                Some("diff") => diff::diff_to_v2(read).map_or(item, |diff| to_raw_value(&diff)),
                // A bare content block, as one page of the specification shows it.
                Some(block) if ContentBlock::TAGS.contains(&block) => {
                    to_raw_value(&object! { "type": "content", "content": item })
                }
                _ => item,
            }
        })
        .collect();
    call.set("content", to_raw_value(&content));
}
