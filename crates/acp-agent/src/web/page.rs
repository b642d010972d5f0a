//! Converts a fetched document to text for a model.

use std::collections::HashMap;
use std::rc::Rc;

use encoding_rs::Encoding;
use htmd::{HtmlToMarkdown, Node};

use crate::web::document::Document;

/// The maximum number of elements in a page that may be open at the same time. The parsing time is quadratic in this
/// number.
const MAX_OPEN_ELEMENTS: usize = 2000;

/// The maximum nesting depth of a page. There is a limit because the conversion to Markdown is recursive.
const MAX_DEPTH: usize = 400;

/// HTML elements that are not part of a page's content.
const OMITTED_ELEMENTS: [&str; 9] = [
    "head", "script", "style", "noscript", "template", "svg", "iframe", "nav", "footer",
];

/// Returns the text of a document, converting HTML to Markdown. This may take a while.
///
/// # Errors
/// The document is not text. The error says what it is instead.
pub(crate) fn to_text(document: &Document) -> Result<String, String> {
    let media_type = document.media_type.as_str();
    let binary = || {
        let what = match media_type {
            "" => "of unspecified type",
            other => other,
        };
        format!("not text: {what}, {} bytes.", document.body.len())
    };
    let html = matches!(media_type, "text/html" | "application/xhtml+xml");
    if !html && !is_text(media_type) {
        return Err(binary());
    }
    let text = decode_text(document);
    if text.contains('\0') {
        return Err(binary());
    }
    let begins = |with: &str| {
        let start = text.trim_start().as_bytes();
        start
            .get(..with.len())
            .is_some_and(|s| s.eq_ignore_ascii_case(with.as_bytes()))
    };
    let unnamed = media_type.is_empty() && (begins("<!doctype html") || begins("<html"));
    if html || unnamed {
        to_markdown(&text)
    } else {
        Ok(text)
    }
}

fn is_text(media_type: &str) -> bool {
    const OTHER_TEXT_MEDIA_TYPES: [&str; 12] = [
        "",
        "json",
        "ld+json",
        "xml",
        "javascript",
        "ecmascript",
        "x-javascript",
        "yaml",
        "x-yaml",
        "toml",
        "x-sh",
        "x-ndjson",
    ];
    match media_type.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", rest)) => {
            OTHER_TEXT_MEDIA_TYPES.contains(&rest)
                || rest.ends_with("+json")
                || rest.ends_with("+xml")
                || rest.ends_with("+yaml")
        }
        Some((_, rest)) => rest.ends_with("+json") || rest.ends_with("+xml"),
        None => media_type.is_empty(),
    }
}

/// Decodes the body. The encoding is determined by the byte order mark, the server or the page, and defaults to UTF-8.
fn decode_text(document: &Document) -> String {
    let body = document.body.as_slice();
    let named = || Encoding::for_label(document.charset.as_deref()?.as_bytes());
    let said = || {
        let start = body.get(..1024).unwrap_or(body);
        let start = String::from_utf8_lossy(start).to_ascii_lowercase();
        let (_, label) = start.split_once("charset=")?;
        let label = label.trim_start_matches(['"', '\'', ' ']);
        let end = label.find(['"', '\'', ' ', ';', '>', '/'])?;
        Encoding::for_label(label.get(..end)?.as_bytes())
    };
    let html = document.media_type.contains("html");
    let encoding = named().or_else(|| said().filter(|_| html));
    // A byte order mark at the start of the text takes precedence over the encoding named by the server.
    let (text, ..) = encoding.unwrap_or(encoding_rs::UTF_8).decode(body);
    text.into_owned()
}

fn to_markdown(html: &str) -> Result<String, String> {
    let too_deep = || Err("the HTML is nested too deeply.".to_owned());
    if max_open_elements(html) > MAX_OPEN_ELEMENTS {
        return too_deep();
    }
    let converter = HtmlToMarkdown::builder()
        .skip_tags(OMITTED_ELEMENTS.to_vec())
        .build();
    let tree = converter.html_to_tree(html).map_err(|e| e.to_string())?;
    if exceeds_max_depth(&tree) {
        return too_deep();
    }
    Ok(converter.tree_to_markdown(&tree))
}

/// Estimates the maximum number of elements open at the same time, without a full parser. The estimate errs on the high
/// side, because it assumes that an end tag only closes an element with the same name.
fn max_open_elements(html: &str) -> usize {
    // These elements have optional end tags or no content.
    const IMPLICITLY_CLOSED_ELEMENTS: [&str; 33] = [
        "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html",
        "img", "input", "li", "link", "meta", "optgroup", "option", "p", "param", "path", "rp",
        "rt", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
    ];
    let (mut open, mut now, mut most) = (HashMap::<String, usize>::new(), 0_usize, 0);
    for tag in html.split('<').skip(1) {
        let (end, tag) = match tag.strip_prefix('/') {
            Some(tag) => (true, tag),
            None => (false, tag),
        };
        let length = tag
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .unwrap_or(tag.len());
        let name = tag.get(..length).unwrap_or_default().to_ascii_lowercase();
        if name.is_empty() || IMPLICITLY_CLOSED_ELEMENTS.contains(&name.as_str()) {
            continue;
        }
        let count = open.entry(name).or_default();
        match end {
            false => (*count, now) = (*count + 1, now + 1),
            true if *count > 0 => (*count, now) = (*count - 1, now - 1),
            true => {}
        }
        most = most.max(now);
    }
    most
}

fn exceeds_max_depth(tree: &Rc<Node>) -> bool {
    let mut ahead = vec![(Rc::clone(tree), 0_usize)];
    while let Some((node, depth)) = ahead.pop() {
        if depth > MAX_DEPTH {
            return true;
        }
        let children = node.children.borrow();
        ahead.extend(children.iter().map(|child| (Rc::clone(child), depth + 1)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_document(
        media_type: &str,
        charset: Option<&str>,
        body: impl Into<Vec<u8>>,
    ) -> Document {
        Document {
            status: reqwest::StatusCode::OK,
            media_type: media_type.to_owned(),
            charset: charset.map(str::to_owned),
            body: body.into(),
        }
    }

    #[test]
    fn html_becomes_markdown_without_page_chrome() {
        let html = "<html><head><title>T</title><style>a {}</style></head><body><nav>Menu</nav>\
                    <h1>Head</h1><p>Some <b>bold</b> &amp; a <a href='/l'>link</a>.</p>\
                    <script>evil()</script><pre><code>fn a() {\n  b\n}</code></pre></body></html>";
        let text = to_text(&test_document("text/html", None, html)).unwrap();
        for part in [
            "# Head",
            "Some **bold** & a [link](/l).",
            "```\nfn a() {\n  b\n}",
        ] {
            assert!(text.contains(part), "{text}");
        }
        for part in ["evil", "Menu", "a {}"] {
            assert!(!text.contains(part), "{text}");
        }
    }

    #[test]
    fn excessively_nested_pages_are_rejected() {
        for (tag, times) in [
            ("<div>", 100_000),
            ("<b>", 3000),
            ("<x-y>", 3000),
            ("<table><tr><td>", 1500),
        ] {
            let document = test_document("text/html", None, tag.repeat(times));
            let why = to_text(&document).unwrap_err();
            assert!(why.contains("too deeply"), "{why}");
        }
        // Adjacent elements are not nested.
        let many = "<ul>".to_owned() + &"<li><p>a <b>b</b> <br>".repeat(20_000);
        assert!(to_text(&test_document("text/html", None, many)).is_ok());
        // This is the deepest page that is allowed, on the smallest stack that is used.
        let deep = "<ul><li>".repeat(MAX_DEPTH / 2 - 10) + "bottom";
        assert!(
            to_text(&test_document("text/html", None, deep))
                .unwrap()
                .contains("bottom")
        );
    }

    #[test]
    fn text_is_decoded_and_other_content_types_are_rejected() {
        let text =
            |media_type, charset, body: &[u8]| to_text(&test_document(media_type, charset, body));
        assert_eq!(
            text("application/json", None, b"{\"a\": 1}").unwrap(),
            "{\"a\": 1}"
        );
        assert_eq!(
            text("text/plain", Some("iso-8859-1"), b"caf\xe9").unwrap(),
            "caf\u{e9}"
        );
        let page = b"<html><meta charset=\"latin1\"><body>caf\xe9";
        assert_eq!(text("text/html", None, page).unwrap(), "caf\u{e9}");
        assert_eq!(text("", None, b"<!DOCTYPE html><p>a").unwrap(), "a");
        let why = text("image/png", None, b"\x89PNG").unwrap_err();
        assert!(why.contains("image/png, 4 bytes"), "{why}");
        assert!(text("text/plain", None, b"a\0b").is_err());
    }
}
