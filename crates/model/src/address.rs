//! Base addresses as people write them.

/// A base address that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// `scheme://host[:port][/path]`, without a slash at the end.
    url: String,
    /// Whether it names a version already (`/v1`).
    versioned: bool,
    /// Whether it is on this machine: no proxy is asked.
    pub(crate) loopback: bool,
    pub(crate) tls: bool,
}

impl Base {
    /// Understands `https://host/v1`, `host:8080`, `http://host/` and full endpoints. Without a scheme it is `http` on this machine and
    /// `https` elsewhere.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else {
            let host = reqwest::Url::parse(&format!("http://{text}"));
            let scheme = if host.as_ref().is_ok_and(is_loopback) { "http" } else { "https" };
            format!("{scheme}://{text}")
        };
        let url = reqwest::Url::parse(&with_scheme)
            .map_err(|error| format!("`{text}` is not a web address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!("`{text}` is not an http or https address"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!("`{text}` has a `?` or `#` part; a base address ends before it"));
        }
        let mut plain = url.as_str().trim_end_matches('/').to_owned();
        for endpoint in ["/chat/completions", "/responses", "/messages"] {
            if let Some(shorter) = plain.strip_suffix(endpoint) {
                plain.truncate(shorter.len());
            }
        }
        let versioned = plain.rsplit('/').next().is_some_and(is_version) && url.path() != "/";
        Ok(Base { url: plain, versioned, loopback: is_loopback(&url), tls: url.scheme() == "https" })
    }

    /// Ollama's way of naming a host: the port is 11434 when absent, `0.0.0.0` (what the server listens on) means this machine, and the
    /// path of a compatible endpoint is cut off.
    pub(crate) fn parse_ollama(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let (authority, path) =
            rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        let authority =
            if authority.starts_with(':') { format!("127.0.0.1{authority}") } else { authority.to_owned() };
        let authority = match authority.strip_prefix("0.0.0.0") {
            Some(port) => format!("127.0.0.1{port}"),
            None => authority,
        };
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let authority = if has_port || scheme == "https" { authority } else { format!("{authority}:11434") };
        let path = path.trim_end_matches('/');
        let path = if matches!(path, "v1" | "api") { "" } else { path };
        Base::parse(format!("{scheme}://{authority}/{path}").trim_end_matches('/'))
    }

    /// The address of `path` (`/messages`) below this base; `version` (`/v1`) is put in unless the base has one.
    pub(crate) fn join(&self, version: &str, path: &str) -> String {
        let version = if self.versioned { "" } else { version };
        format!("{}{version}{path}", self.url)
    }

    /// For people and recordings: without a user name and password.
    pub(crate) fn shown(&self) -> String {
        match (self.url.split_once("://"), self.url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
            _ => self.url.clone(),
        }
    }

    pub(crate) fn host(&self) -> String {
        let shown = self.shown();
        let rest = shown.split_once("://").map_or(shown.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest).to_owned()
    }
}

fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    rest.starts_with(|first: char| first.is_ascii_digit()) && rest.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_loopback(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn bases_with_and_without_a_version() {
        let cases = [
            ("https://api.openai.com", "https://api.openai.com/v1/responses"),
            ("https://api.openai.com/", "https://api.openai.com/v1/responses"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1/responses"),
            ("https://api.openai.com/v1/responses", "https://api.openai.com/v1/responses"),
            ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/responses"),
            ("https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4/responses"),
            ("https://host/v1beta", "https://host/v1beta/responses"),
            ("localhost:8080", "http://localhost:8080/v1/responses"),
            ("127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/responses"),
            ("[::1]:8080", "http://[::1]:8080/v1/responses"),
            ("models.example.org", "https://models.example.org/v1/responses"),
            ("http://v2", "http://v2/v1/responses"),
        ];
        for (base, expected) in cases {
            assert_eq!(
                Base::parse(base).map(|base| base.join("/v1", "/responses")),
                Ok(expected.to_owned()),
                "{base}"
            );
        }
        for wrong in ["", "ftp://host", "https://", "https://host/v1?key=1", "http://[half"] {
            assert!(Base::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ollama_hosts() {
        let cases = [
            ("127.0.0.1", "http://127.0.0.1:11434/api/chat"),
            ("127.0.0.1:9000", "http://127.0.0.1:9000/api/chat"),
            (":9000", "http://127.0.0.1:9000/api/chat"),
            ("0.0.0.0", "http://127.0.0.1:11434/api/chat"),
            ("0.0.0.0:11434", "http://127.0.0.1:11434/api/chat"),
            ("http://gpu", "http://gpu:11434/api/chat"),
            ("http://gpu:11434/v1", "http://gpu:11434/api/chat"),
            ("https://ollama.com", "https://ollama.com/api/chat"),
            ("http://gpu:80/ollama/", "http://gpu/ollama/api/chat"),
        ];
        for (base, expected) in cases {
            assert_eq!(
                Base::parse_ollama(base).map(|base| base.join("", "/api/chat")),
                Ok(expected.to_owned()),
                "{base}"
            );
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        let base = Base::parse("https://me:secret@host/v1").unwrap();
        assert_eq!(base.shown(), "https://host/v1");
        assert_eq!(base.host(), "host");
    }
}
