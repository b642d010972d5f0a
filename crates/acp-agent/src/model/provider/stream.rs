//! One round: the model is asked, and asked again while it is busy, and what it answers becomes steps.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream::unfold;
use reqwest::StatusCode;

use super::backoff::{Backoff, Wait};
use super::decode::{Decoded, Decoder};
use super::error_report::ErrorReport;
use super::exchange::{Exchange, ExchangeError};
use super::failure::{Again, Failure};
use super::served::Served;
use super::wire_format::WireFormat;
use crate::model::error::ModelError;
use crate::model::interface::Request;
use crate::model::message::{Message, Sealed};
use crate::model::step::{Step, Steps};

/// What each event counts at least, in bytes, toward what an answer may have.
const EVENT: usize = 32;

/// A round that runs.
pub(super) struct Round<'a> {
    served: &'a Served,
    request: Request<'a>,
    state: State,
    /// What is known and was not taken yet.
    ready: VecDeque<Result<Step, ModelError>>,
    backoff: Backoff,
    /// Whether anything of the answer was given on: it cannot be asked for once more then.
    shown: bool,
    /// How many bytes have come.
    bytes: usize,
}

enum State {
    Ask,
    /// Until the next try.
    Wait(Duration),
    Listen(Box<Listening>),
    /// All of the answer has come, and it is not known yet that nothing follows.
    End(Box<Listening>),
    Done,
}

struct Listening {
    exchange: Exchange,
    decoder: Box<dyn Decoder>,
    /// Whether anything has come that is an event.
    heard: bool,
}

impl<'a> Round<'a> {
    pub(super) fn steps(served: &'a Served, request: Request<'a>) -> Steps<'a> {
        let round = Self {
            served,
            request,
            state: State::Ask,
            ready: VecDeque::new(),
            backoff: Backoff::new(served.model.retries),
            shown: false,
            bytes: 0,
        };
        Box::pin(unfold(round, |mut round| async move {
            let step = round.next().await?;
            Some((step, round))
        }))
    }

    async fn next(&mut self) -> Option<Result<Step, ModelError>> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return None,
                State::Wait(time) => {
                    tokio::time::sleep(time).await;
                    self.state = State::Ask;
                }
                State::End(listening) => listening.exchange.end().await,
                State::Ask => match self.ask().await {
                    Ok(Some(listening)) => self.state = State::Listen(Box::new(listening)),
                    Ok(None) => self.state = State::Ask,
                    Err(failure) => self.failed(failure),
                },
                State::Listen(mut listening) => match self.listen(&mut listening).await {
                    Ok(true) => self.state = State::Listen(listening),
                    Ok(false) => self.state = State::End(listening),
                    Err(failure) => self.failed(failure),
                },
            }
        }
    }

    /// Waits for another try, or gives up.
    fn failed(&mut self, failure: Failure) {
        let Failure {
            mut error,
            plain,
            again,
        } = failure;
        let Again::After(asked_for) = again else {
            return self.ready.push_back(Err(error));
        };
        let wait = match self.backoff.wait(asked_for) {
            Wait::For(wait) if !self.shown => wait,
            Wait::TooLong(wait) if !self.shown => {
                let seconds = wait.as_secs_f64();
                error.message =
                    format!("{}; it may be asked again in {seconds:.0} s", error.message);
                return self.ready.push_back(Err(error));
            }
            _ => return self.ready.push_back(Err(error)),
        };
        let seconds = wait.as_secs_f64();
        tracing::info!(%error, seconds, "the model is asked again");
        let (next, all) = self.backoff.next();
        let text = format!("{plain}. It is asked again in {seconds:.1} s: try {next} of {all}.");
        self.ready.push_back(Ok(Step::Delay(text)));
        self.state = State::Wait(wait);
    }

    /// Asks. Gives nothing where that is to be done once more at once, without what the server has refused.
    async fn ask(&mut self) -> Result<Option<Listening>, Failure> {
        let served = self.served;
        let model = &served.model;
        if model.lacks_key() {
            return Err(served.about().unauthorized("there is no key for it"));
        }
        let question = served.question(self.request).await?;
        self.bytes = 0;
        let exchange = match Exchange::begin(question).await {
            Ok(exchange) => exchange,
            Err(ExchangeError::Status(status, _, said))
                if status == StatusCode::BAD_REQUEST
                    && model.wire_format() == WireFormat::OpenAiResponses
                    && served
                        .http
                        .refuses(&served.by, &ErrorReport::read(&said).parameter) =>
            {
                return Ok(None);
            }
            Err(broke) => {
                self.backoff.asks();
                return Err(served.about().broke(&broke));
            }
        };
        self.backoff.asks();
        let calls = |message: &Message| match message {
            Message::Assistant { calls, .. } => calls.len(),
            _ => 0,
        };
        let before = self.request.conversation.iter().map(calls).sum();
        Ok(Some(Listening {
            exchange,
            decoder: model.wire_format().decoder(before),
            heard: false,
        }))
    }

    /// Takes an event. Gives whether there are more to come.
    async fn listen(&mut self, listening: &mut Listening) -> Result<bool, Failure> {
        let about = self.served.about();
        let heard = match listening.exchange.next().await {
            Ok(Some(event)) => {
                listening.heard = true;
                let heard = listening.decoder.event(&event);
                heard.map_err(|fault| about.fault(&fault))?
            }
            Ok(None) => listening
                .decoder
                .cut()
                .ok_or_else(|| match listening.heard {
                    true => about.broken("the answer broke off"),
                    false => about.broken("the answer is no stream of events"),
                })?,
            Err(broke) => listening.decoder.cut().ok_or_else(|| about.broke(&broke))?,
        };
        let mut more = true;
        for heard in heard {
            match heard {
                Decoded::Kept(bytes) => self.count(bytes)?,
                Decoded::Sealed(parts) => {
                    let sealed = Sealed::new(self.served.by.as_str(), parts);
                    self.ready.push_back(Ok(Step::Sealed(sealed)));
                }
                Decoded::Step(step) => {
                    more &= !matches!(step, Step::Stop(_));
                    self.say(step)?;
                }
            }
        }
        Ok(more)
    }

    /// Gives a step on. A call is no part of an answer before it is whole: another try begins it anew, and what was
    /// shown of it has failed then. So the round can be asked for once more.
    fn say(&mut self, step: Step) -> Result<(), Failure> {
        match &step {
            Step::Text(text) | Step::Thought(text) => {
                self.count(text.len())?;
                self.shown = true;
            }
            Step::Begins { tool, .. } => self.count(tool.len())?,
            Step::Writes { arguments, .. } => self.count(arguments.len())?,
            _ => {}
        }
        self.ready.push_back(Ok(step));
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes.max(EVENT));
        let most = self.served.model.longest_answer;
        if self.bytes <= most {
            return Ok(());
        }
        let mut failure = self
            .served
            .about()
            .broken(&format!("the answer has more than {most} bytes"));
        // It would be no shorter.
        failure.again = Again::No;
        Err(failure)
    }
}
