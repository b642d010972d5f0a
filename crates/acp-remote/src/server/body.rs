//! The body of an endpoint's response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::http::Events;

/// The body of an endpoint's response: a text, or a stream of events.
#[derive(Debug)]
pub struct ResponseBody(Content);

#[derive(Debug)]
enum Content {
    Empty,
    Text(Bytes),
    Events(Events),
}

impl From<String> for ResponseBody {
    fn from(text: String) -> Self {
        Self::from(Bytes::from(text))
    }
}

impl From<Bytes> for ResponseBody {
    fn from(text: Bytes) -> Self {
        Self(if text.is_empty() {
            Content::Empty
        } else {
            Content::Text(text)
        })
    }
}

impl From<Events> for ResponseBody {
    fn from(events: Events) -> Self {
        Self(Content::Events(events))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Empty => Poll::Ready(None),
            Content::Text(text) => {
                let text = std::mem::take(text);
                self.0 = Content::Empty;
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            Content::Events(events) => events
                .poll_next(cx)
                .map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Empty => SizeHint::with_exact(0),
            Content::Text(text) => SizeHint::with_exact(text.len() as u64),
            Content::Events(_) => SizeHint::default(),
        }
    }
}
