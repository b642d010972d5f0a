//! URLs that the user may open in a browser.

use std::process::Stdio;
use std::time::Duration;

use ratatui::text::Span;
use tokio::process::Command;
use url::{Host, Position, Url};

use crate::question::lines::literal_line;
use crate::theme::Theme;

/// How long to wait for the program that opens URLs to report a failure. Some of these programs run as long as the
/// browser does.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);

/// A URL that the user may open, with the scheme `http` or `https`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WebAddress(Url);

impl WebAddress {
    pub(crate) fn new(url: &Url) -> Option<Self> {
        let web = matches!(url.scheme(), "http" | "https") && url.has_host();
        web.then(|| Self(url.clone()))
    }

    /// Returns the URL as a browser reads it.
    pub(crate) fn url(&self) -> &Url {
        &self.0
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

/// Returns the warnings to show before the URL is opened.
pub(crate) fn url_warnings(url: &Url) -> Vec<String> {
    let mut warnings = Vec::new();
    let host = url.host_str().unwrap_or_default();
    if WebAddress::new(url).is_none() {
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

/// Builds the URL's spans, with the host emphasized.
pub(crate) fn render_url(url: &Url, theme: &Theme) -> Vec<Span<'static>> {
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
