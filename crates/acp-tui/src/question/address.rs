//! Asks the user to open a URL (specification: Elicitation, URL mode).
//!
//! The whole URL is shown, as a browser reads it, and it is opened only if the user presses the key for that.

use std::process::Stdio;
use std::time::Duration;

use acp::v1::{ElicitationAcceptAction, ElicitationAction};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tokio::process::Command;
use url::{Host, Position, Url};

use super::lines::{LineBreak, literal_line, literal_text, wrap_paragraph, wrap_spans};
use super::{QuestionBody, QuestionOutcome, decline_outcome};
use crate::Theme;
use crate::agent::ChatAnswer;
use crate::draw_context::DrawContext;

/// How long to wait for the program that opens URLs to report a failure. Some of these programs run as long as the
/// browser does.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);

/// A URL that the user may open, with the scheme `http` or `https`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebAddress(Url);

impl WebAddress {
    fn new(url: &Url) -> Option<Self> {
        let web = matches!(url.scheme(), "http" | "https") && url.has_host();
        web.then(|| Self(url.clone()))
    }

    /// Opens the URL with the system's default program. No shell is involved.
    ///
    /// # Errors
    /// There is no such program, or it failed. The error is a text for the user.
    pub(crate) async fn open(&self) -> Result<(), String> {
        #[cfg(target_os = "macos")]
        let program: &[&str] = &["open"];
        #[cfg(windows)]
        let program: &[&str] = &["rundll32", "url.dll,FileProtocolHandler"];
        #[cfg(not(any(target_os = "macos", windows)))]
        let program: &[&str] = &["xdg-open"];
        open_with(program, self).await
    }
}

pub(super) struct AddressView {
    message: String,
    /// The URL as the agent sent it.
    raw_url: String,
    /// The URL as a browser parses it.
    url: Option<Url>,
    /// The result of opening the URL.
    open_result: Option<Result<(), String>>,
}

impl AddressView {
    pub(super) fn new(message: &str, given: &str) -> Self {
        Self {
            message: message.to_owned(),
            raw_url: given.to_owned(),
            url: Url::parse(given).ok(),
            open_result: None,
        }
    }

    fn address(&self) -> Option<WebAddress> {
        self.url.as_ref().and_then(WebAddress::new)
    }

    pub(super) fn set_open_result(&mut self, result: Result<(), String>) {
        self.open_result = Some(result);
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> QuestionOutcome {
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        if !plain || key.kind != KeyEventKind::Press {
            return QuestionOutcome::Ignored;
        }
        match key.code {
            KeyCode::Char('o') => self
                .address()
                .map_or(QuestionOutcome::Changed, QuestionOutcome::OpenAddress),
            KeyCode::Char('y') => {
                let action = ElicitationAction::Accept(ElicitationAcceptAction::default());
                QuestionOutcome::Answer(ChatAnswer::Elicitation(action))
            }
            KeyCode::Char('n') => decline_outcome(),
            KeyCode::Char(_) | KeyCode::Enter => QuestionOutcome::Changed,
            _ => QuestionOutcome::Ignored,
        }
    }

    pub(super) fn build_body(
        &self,
        agent: &str,
        width: u16,
        look: &DrawContext<'_>,
    ) -> QuestionBody {
        let theme = look.theme;
        let asks = format!("{agent} asks: {}", self.message);
        let mut lines = wrap_paragraph(&asks, theme.text, theme, width);
        let whole = |text: &str, style: Style| {
            wrap_spans(
                &literal_line(text, style, theme),
                LineBreak::Anywhere,
                2,
                width,
            )
        };
        lines.push(Line::default());
        match &self.url {
            Some(url) => {
                let spans = render_url(url, theme);
                lines.extend(wrap_spans(&spans, LineBreak::Anywhere, 2, width));
                // A browser may read the URL differently than a user does.
                let same = [url.as_str(), url.as_str().trim_end_matches('/')];
                if !same.contains(&self.raw_url.as_str()) {
                    lines.push(Line::styled("As written by the agent:", theme.dim));
                    lines.extend(whole(&self.raw_url, theme.dim));
                }
            }
            None => lines.extend(whole(&self.raw_url, theme.strong)),
        }
        lines.push(Line::default());
        for warning in self.warnings() {
            let mut spans = vec![Span::styled("! ", theme.warn)];
            spans.extend(literal_text(&warning, theme.warn, theme));
            lines.extend(wrap_spans(&spans, LineBreak::Words, 2, width));
        }
        match &self.open_result {
            Some(Ok(())) => lines.push(Line::styled("Opened in your browser.", theme.good)),
            Some(Err(why)) => {
                let why = format!("Cannot open the URL: {why}. Open it manually.");
                lines.extend(wrap_paragraph(&why, theme.bad, theme, width));
            }
            None => {}
        }
        if lines.last().is_some_and(|line| line.spans.is_empty()) {
            lines.pop();
        }
        QuestionBody {
            lines,
            ..QuestionBody::default()
        }
    }

    /// Returns the warnings to show before the URL is opened.
    fn warnings(&self) -> Vec<String> {
        let Some(url) = &self.url else {
            return vec!["Invalid URL.".to_owned()];
        };
        let mut warnings = Vec::new();
        let host = url.host_str().unwrap_or_default();
        if self.address().is_none() {
            let scheme = url.scheme();
            warnings.push(format!(
                "Not a web page: `{scheme}` URLs cannot be opened from here."
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            warnings.push(format!(
                "The part before the @ is not the site name. The site is {host}."
            ));
        }
        if host.split('.').any(|label| label.starts_with("xn--")) {
            let (letters, _) = idna::domain_to_unicode(host);
            warnings.push(format!(
                "The site name contains letters that can look like others. It reads {letters}. Make sure this is the site you expect."
            ));
        }
        let here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        };
        if url.scheme() == "http" && !here {
            warnings.push("This connection is not encrypted (http).".to_owned());
        }
        warnings
    }

    pub(super) fn build_choices(&self, width: u16, look: &DrawContext<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let open = self.address().map(|_| ("o", "open in browser"));
        let others = [("y", "done: tell the agent to continue"), ("n", "decline")];
        let choices = open.into_iter().chain(others);
        choices
            .flat_map(|(key, what)| {
                let key = Span::styled(format!(" {key}  "), theme.accent);
                let spans = [key, Span::styled(what, theme.text)];
                wrap_spans(&spans, LineBreak::Words, 4, width)
            })
            .collect()
    }
}

/// Builds the URL's spans, with the host emphasized.
fn render_url(url: &Url, theme: &Theme) -> Vec<Span<'static>> {
    let mut spans = literal_line(&url[..Position::BeforeHost], theme.dim, theme);
    let host = theme.strong.patch(theme.link);
    spans.extend(literal_line(
        &url[Position::BeforeHost..Position::AfterPort],
        host,
        theme,
    ));
    spans.extend(literal_line(&url[Position::AfterPort..], theme.text, theme));
    spans
}

async fn open_with(program: &[&str], address: &WebAddress) -> Result<(), String> {
    let Some((name, arguments)) = program.split_first() else {
        return Err("no program found to open URLs".to_owned());
    };
    let mut command = Command::new(name);
    command
        .args(arguments)
        .arg(address.0.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The program must not get this terminal's input, neither keys nor Ctrl-C.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
    match tokio::time::timeout(OPEN_TIMEOUT, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(format!("{name} failed ({status})")),
        Ok(Err(e)) => Err(format!("{name}: {e}")),
        // The process may be the browser itself, which keeps running. The runtime reaps it when it exits.
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn url_is_passed_as_a_single_argument() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("heard");
        let script = format!("printf %s \"$0\" > '{}'", file.display());
        let url = Url::parse("https://example.org/?a=1&b=$(touch%20x);`id`'\"").unwrap();
        let address = WebAddress::new(&url).unwrap();
        open_with(&["sh", "-c", &script], &address).await.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), url.as_str());
        let why = open_with(&["sh", "-c", "exit 3"], &address)
            .await
            .unwrap_err();
        assert!(why.contains("sh failed") && why.contains('3'), "{why}");
        let why = open_with(&["no-such-program-here"], &address).await;
        assert!(why.unwrap_err().starts_with("no-such-program-here: "));
    }

    #[test]
    fn only_web_urls_are_opened() {
        for address in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ssh://x",
            "mailto:a@b",
        ] {
            assert_eq!(
                WebAddress::new(&Url::parse(address).unwrap()),
                None,
                "{address}"
            );
        }
    }
}
