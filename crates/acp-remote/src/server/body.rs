//! The body of an endpoint's response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::http::EventStream;

/// The body of an endpoint's response: text or a stream of events.
#[derive(Debug)]
pub struct ResponseBody(BodyContent);

#[derive(Debug)]
enum BodyContent {
    Empty,
    Text(Bytes),
    Events(EventStream),
}

impl From<String> for ResponseBody {
    fn from(text: String) -> Self {
        Self::from(Bytes::from(text))
    }
}

impl From<Bytes> for ResponseBody {
    fn from(text: Bytes) -> Self {
        Self(if text.is_empty() {
            BodyContent::Empty
        } else {
            BodyContent::Text(text)
        })
    }
}

impl From<EventStream> for ResponseBody {
    fn from(events: EventStream) -> Self {
        Self(BodyContent::Events(events))
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
            BodyContent::Empty => Poll::Ready(None),
            BodyContent::Text(text) => {
                let text = std::mem::take(text);
                self.0 = BodyContent::Empty;
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            BodyContent::Events(events) => events
                .poll_next(cx)
                .map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, BodyContent::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyContent::Empty => SizeHint::with_exact(0),
            BodyContent::Text(text) => SizeHint::with_exact(text.len() as u64),
            BodyContent::Events(_) => SizeHint::default(),
        }
    }
}
