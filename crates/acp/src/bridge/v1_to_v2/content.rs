//! What tool calls have produced.

use acp_wire::RawObject;
use acp_wire::v1::ContentBlock;
use serde_json::value::RawValue;

use super::super::diff;
use super::super::json::{items, object, to_raw_value};

/// In version 1 `null` says nothing; in version 2 it clears.
pub(super) fn without_nulls(mut object: RawObject) -> RawObject {
    object.retain(|_, value| value.get() != "null");
    object
}

/// The content of a tool call, item by item.
pub(super) fn items_to_v2(call: &mut RawObject) {
    if !call.has("content") {
        return;
    }
    let content: Vec<Box<RawValue>> = items(call, "content")
        .into_iter()
        .map(|item| {
            let read = object(Some(&item));
            match read.field::<String>("type").as_deref() {
                Some("diff") => diff::to_v2(read).map_or(item, |diff| to_raw_value(&diff)),
                // A bare content block: a page of the specification shows it so.
                Some(block) if ContentBlock::TAGS.contains(&block) => {
                    to_raw_value(&object! { "type": "content", "content": item })
                }
                _ => item,
            }
        })
        .collect();
    call.set("content", to_raw_value(&content));
}
