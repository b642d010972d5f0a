//! Runs one round of a model: sends the request, retries if the model is busy, and converts the response to steps.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream::unfold;
use reqwest::StatusCode;

use super::backoff::{Backoff, RetryDecision};
use super::decode::{DecodedPart, EventDecoder};
use super::error_report::ErrorReport;
use super::exchange::{Exchange, ExchangeError};
use super::failure::{ModelFailure, RetryAdvice};
use super::served_model::ServedModel;
use super::wire_format::WireFormat;
use crate::model::error::ModelError;
use crate::model::interface::RoundRequest;
use crate::model::message::{ModelMessage, OpaqueParts};
use crate::model::step::{Step, Steps};

/// The minimum size that each event counts toward the limit on the response, in bytes.
const MIN_EVENT_BYTES: usize = 32;

/// A model round that is in progress.
pub(super) struct ModelRound<'a> {
    served: &'a ServedModel,
    request: RoundRequest<'a>,
    state: RoundState,
    /// Decoded steps that have not been returned yet.
    pending_steps: VecDeque<Result<Step, ModelError>>,
    backoff: Backoff,
    /// Whether any text or thoughts have been returned. From then on, the request cannot be retried.
    has_output: bool,
    /// The number of bytes received so far.
    bytes: usize,
}

enum RoundState {
    Connect,
    /// Wait this long before the next attempt.
    Wait(Duration),
    Receive(Box<ResponseStream>),
    /// The response is complete. Read the stream to its end.
    End(Box<ResponseStream>),
    Done,
}

struct ResponseStream {
    exchange: Exchange,
    decoder: Box<dyn EventDecoder>,
    /// Whether any event of the response has been received.
    has_received: bool,
}

impl<'a> ModelRound<'a> {
    pub(super) fn steps(served: &'a ServedModel, request: RoundRequest<'a>) -> Steps<'a> {
        let round = Self {
            served,
            request,
            state: RoundState::Connect,
            pending_steps: VecDeque::new(),
            backoff: Backoff::new(served.model.retries),
            has_output: false,
            bytes: 0,
        };
        Box::pin(unfold(round, |mut round| async move {
            let step = round.next().await?;
            Some((step, round))
        }))
    }

    async fn next(&mut self) -> Option<Result<Step, ModelError>> {
        loop {
            if let Some(step) = self.pending_steps.pop_front() {
                return Some(step);
            }
            match std::mem::replace(&mut self.state, RoundState::Done) {
                RoundState::Done => return None,
                RoundState::Wait(time) => {
                    tokio::time::sleep(time).await;
                    self.state = RoundState::Connect;
                }
                RoundState::End(response_stream) => response_stream.exchange.drain().await,
                RoundState::Connect => match self.send_request().await {
                    Ok(Some(response_stream)) => {
                        self.state = RoundState::Receive(Box::new(response_stream))
                    }
                    Ok(None) => self.state = RoundState::Connect,
                    Err(failure) => self.handle_failure(failure),
                },
                RoundState::Receive(mut response_stream) => {
                    match self.receive(&mut response_stream).await {
                        Ok(true) => self.state = RoundState::Receive(response_stream),
                        Ok(false) => self.state = RoundState::End(response_stream),
                        Err(failure) => self.handle_failure(failure),
                    }
                }
            }
        }
    }

    /// Handles a failure: starts the wait before a retry, or ends the round.
    fn handle_failure(&mut self, failure: ModelFailure) {
        let ModelFailure {
            mut error,
            summary: plain,
            again,
        } = failure;
        let RetryAdvice::After(asked_for) = again else {
            return self.pending_steps.push_back(Err(error));
        };
        let wait = match self.backoff.decide_retry(asked_for) {
            RetryDecision::After(wait) if !self.has_output => wait,
            RetryDecision::TooLong(wait) if !self.has_output => {
                let seconds = wait.as_secs_f64();
                error.message = format!("{}; retry after {seconds:.0} s", error.message);
                return self.pending_steps.push_back(Err(error));
            }
            _ => return self.pending_steps.push_back(Err(error)),
        };
        let seconds = wait.as_secs_f64();
        tracing::info!(%error, seconds, "retrying the model request");
        let (next, all) = self.backoff.next_attempt();
        let text = format!("{plain}. Retrying in {seconds:.1} s ({next} of {all}).");
        self.pending_steps.push_back(Ok(Step::Delay(text)));
        self.state = RoundState::Wait(wait);
    }

    /// Sends the request. Returns `None` if the server has just rejected a parameter and the request must be resent
    /// without it.
    async fn send_request(&mut self) -> Result<Option<ResponseStream>, ModelFailure> {
        let served = self.served;
        let model = &served.model;
        if model.lacks_key() {
            return Err(served
                .failed_model()
                .unauthorized_failure("API key missing"));
        }
        let question = served.http_request(self.request).await?;
        self.bytes = 0;
        let exchange = match Exchange::send(question).await {
            Ok(exchange) => exchange,
            Err(ExchangeError::Status(status, _, said))
                if status == StatusCode::BAD_REQUEST
                    && model.wire_format() == WireFormat::OpenAiResponses
                    && served
                        .http
                        .record_unsupported(&served.by, &ErrorReport::parse(&said).parameter) =>
            {
                return Ok(None);
            }
            Err(exchange_error) => {
                self.backoff.begin_attempt();
                return Err(served.failed_model().connection_failure(&exchange_error));
            }
        };
        self.backoff.begin_attempt();
        let calls = |message: &ModelMessage| match message {
            ModelMessage::Assistant { calls, .. } => calls.len(),
            _ => 0,
        };
        let before = self.request.conversation.iter().map(calls).sum();
        Ok(Some(ResponseStream {
            exchange,
            decoder: model.wire_format().decoder(before),
            has_received: false,
        }))
    }

    /// Handles the next event. Returns `true` if more events follow.
    async fn receive(
        &mut self,
        response_stream: &mut ResponseStream,
    ) -> Result<bool, ModelFailure> {
        let about = self.served.failed_model();
        let decoded = match response_stream.exchange.next().await {
            Ok(Some(event)) => {
                response_stream.has_received = true;
                let decoded = response_stream.decoder.decode(&event);
                decoded.map_err(|fault| about.decode_failure(&fault))?
            }
            Ok(None) => {
                response_stream.decoder.end_of_stream().ok_or_else(|| {
                    match response_stream.has_received {
                        true => about.invalid_response("the response was cut off"),
                        false => about.invalid_response("the response is not an event stream"),
                    }
                })?
            }
            Err(exchange_error) => response_stream
                .decoder
                .end_of_stream()
                .ok_or_else(|| about.connection_failure(&exchange_error))?,
        };
        let mut more = true;
        for decoded in decoded {
            match decoded {
                DecodedPart::BufferedBytes(bytes) => self.count_bytes(bytes)?,
                DecodedPart::OpaquePart(parts) => {
                    let sealed = OpaqueParts::new(self.served.by.as_str(), parts);
                    self.pending_steps.push_back(Ok(Step::OpaqueParts(sealed)));
                }
                DecodedPart::Step(step) => {
                    more &= !matches!(step, Step::Stop(_));
                    self.push_step(step)?;
                }
            }
        }
        Ok(more)
    }

    /// Queues a step. A failed request cannot be retried after text or thoughts. After an unfinished tool call, it can:
    /// the new attempt starts over, and the call that was shown is reported as failed.
    fn push_step(&mut self, step: Step) -> Result<(), ModelFailure> {
        match &step {
            Step::Text(text) | Step::Thought(text) => {
                self.count_bytes(text.len())?;
                self.has_output = true;
            }
            Step::CallStarted { tool, .. } => self.count_bytes(tool.len())?,
            Step::CallDelta { arguments, .. } => self.count_bytes(arguments.len())?,
            _ => {}
        }
        self.pending_steps.push_back(Ok(step));
        Ok(())
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), ModelFailure> {
        self.bytes = self.bytes.saturating_add(bytes.max(MIN_EVENT_BYTES));
        let most = self.served.model.max_response_bytes;
        if self.bytes <= most {
            return Ok(());
        }
        let mut failure = self
            .served
            .failed_model()
            .invalid_response(&format!("response larger than {most} bytes"));
        // The response to a retry would not be shorter.
        failure.again = RetryAdvice::Never;
        Err(failure)
    }
}
