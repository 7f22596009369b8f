//! The way to a provider: HTTP, or something that stands for it (a recording, a test).

use std::{
    error::Error as _,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    address::Base,
    fault::{Fault, FaultKind},
    frames::{Frame, Framer, Framing},
    limits::{CONNECT_TIMEOUT, ERROR_BODY_BYTES, FIRST_BYTE_TIMEOUT, IDLE_TIMEOUT, POOL_IDLE},
    settings::Settings,
};

/// One attempt, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct HttpCall {
    /// Below the base address.
    pub(crate) path: String,
    /// The version part of the address, for bases that lack it.
    pub(crate) version: &'static str,
    /// Without the key.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    pub(crate) framing: Framing,
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: ReplyBody,
}

pub(crate) enum ReplyBody {
    Frames(BoxStream<'static, Result<Frame, Fault>>),
    /// Of an error.
    Text(String),
}

#[async_trait]
pub(crate) trait Transport: Send + Sync {
    async fn send(&self, call: &HttpCall) -> Result<Reply, Fault>;
}

/// The HTTP clients that all models of a process share, so that conversations share connections. Making one costs nothing; a
/// client, and the table of trusted certificates for TLS, are built when the first request needs them.
#[derive(Clone, Default)]
pub struct Http(Arc<Clients>);

#[derive(Default)]
struct Clients {
    plain: OnceLock<Result<reqwest::Client, String>>,
    tls: OnceLock<Result<reqwest::Client, String>>,
    proxied: OnceLock<Result<reqwest::Client, String>>,
}

impl Http {
    /// Nothing is built yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn client(&self, base: &Base, proxy: &ProxyChoice) -> Result<reqwest::Client, Fault> {
        let slot = match (&proxy.url, base.tls) {
            (Some(_), _) => &self.0.proxied,
            (None, true) => &self.0.tls,
            (None, false) => &self.0.plain,
        };
        slot.get_or_init(|| build(base.tls, proxy)).clone().map_err(|problem| {
            Fault::new(FaultKind::Refused, format!("no HTTP client could be built: {problem}"))
        })
    }
}

/// The proxy that holds for one address.
#[derive(Clone, Debug, Default)]
struct ProxyChoice {
    url: Option<String>,
    except: Option<String>,
}

fn build(with_tls: bool, proxy: &ProxyChoice) -> Result<reqwest::Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    if with_tls {
        // The machine's own certificates first: a company's proxy is known there only. Bare containers have none.
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        // A redirected POST would carry the key to another host.
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")));
    let builder = match &proxy.url {
        Some(url) => {
            let except = proxy.except.as_deref().and_then(reqwest::NoProxy::from_string);
            builder.proxy(
                reqwest::Proxy::all(url)
                    .map_err(|error| format!("the proxy's address is not usable: {error}"))?
                    .no_proxy(except),
            )
        }
        None => builder,
    };
    builder.build().map_err(|error| describe(&error))
}

/// A provider's server.
pub(crate) struct HttpTransport {
    http: Http,
    base: Base,
    /// Name and value, marked as sensitive.
    key: Option<(HeaderName, HeaderValue)>,
    proxy: ProxyChoice,
    /// Added to "nobody answers".
    hint: &'static str,
}

impl HttpTransport {
    pub(crate) fn new(
        http: Http,
        base: Base,
        key: Option<(HeaderName, HeaderValue)>,
        settings: &Settings,
        hint: &'static str,
    ) -> Self {
        let proxy = if base.loopback || !base.tls {
            ProxyChoice::default()
        } else {
            ProxyChoice {
                url: settings.proxy.as_ref().map(|setting| setting.value.clone()),
                except: settings.no_proxy.clone(),
            }
        };
        HttpTransport { http, base, key, proxy, hint }
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, call: &HttpCall) -> Result<Reply, Fault> {
        let client = self.http.client(&self.base, &self.proxy)?;
        let mut request = client
            .post(self.base.join(call.version, &call.path))
            .header("content-type", "application/json")
            .header(
                "accept",
                if call.framing == Framing::Events { "text/event-stream" } else { "application/x-ndjson" },
            )
            .body(call.body.clone());
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some((name, value)) = &self.key {
            request = request.header(name.clone(), value.clone());
        }
        let response = match tokio::time::timeout(FIRST_BYTE_TIMEOUT, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unsent(&error)),
            Err(_) => {
                return Err(Fault::transient(format!(
                    "{} said nothing for {} s",
                    self.base.host(),
                    FIRST_BYTE_TIMEOUT.as_secs()
                )));
            }
        };
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        if !response.status().is_success() {
            let body = read_error(response).await;
            return Ok(Reply { status, retry_after, body: ReplyBody::Text(body) });
        }
        let kind = response
            .headers()
            .get("content-type")
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        if kind.starts_with("text/html") {
            let text = format!(
                "{} answered with an HTML page instead of a stream; is the base address {} right?",
                self.base.host(),
                self.base.shown()
            );
            return Err(Fault::new(FaultKind::Refused, text));
        }
        let framing = match call.framing {
            Framing::Events if kind.starts_with("application/json") => Framing::Whole,
            other => other,
        };
        Ok(Reply { status, retry_after, body: ReplyBody::Frames(frames(response, framing)) })
    }
}

impl HttpTransport {
    fn unsent(&self, error: &reqwest::Error) -> Fault {
        let what = describe(error);
        if error.is_connect() || error.is_timeout() {
            Fault::new(FaultKind::Unreachable, format!("{} cannot be reached: {what}", self.base.host()))
                .with_hint(self.hint)
        } else {
            Fault::transient(format!("the connection to {} broke: {what}", self.base.host()))
        }
    }
}

fn frames(response: reqwest::Response, framing: Framing) -> BoxStream<'static, Result<Frame, Fault>> {
    struct State {
        bytes: BoxStream<'static, reqwest::Result<Bytes>>,
        framer: Framer,
        ready: std::collections::VecDeque<Frame>,
        over: bool,
    }
    let state = State {
        bytes: response.bytes_stream().boxed(),
        framer: Framer::new(framing),
        ready: std::collections::VecDeque::new(),
        over: false,
    };
    futures::stream::unfold(state, |mut state| async move {
        loop {
            if let Some(frame) = state.ready.pop_front() {
                return Some((Ok(frame), state));
            }
            if state.over {
                return None;
            }
            let mut fresh = Vec::new();
            let fault = match tokio::time::timeout(IDLE_TIMEOUT, state.bytes.next()).await {
                Ok(Some(Ok(piece))) => state.framer.push(&piece, &mut fresh).err(),
                Ok(Some(Err(error))) => {
                    Some(Fault::transient(format!("the stream broke off: {}", describe(&error))))
                }
                Ok(None) => {
                    state.over = true;
                    state.framer.finish(&mut fresh);
                    None
                }
                Err(_) => {
                    Some(Fault::transient(format!("the stream was silent for {} s", IDLE_TIMEOUT.as_secs())))
                }
            };
            state.ready.extend(fresh);
            if let Some(fault) = fault {
                state.over = true;
                state.ready.clear();
                return Some((Err(fault), state));
            }
        }
    })
    .fuse()
    .boxed()
}

/// Reads an error's body as far as it is bounded in size and time; what is there is better than nothing.
async fn read_error(response: reqwest::Response) -> String {
    let mut bytes = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Ok(Some(Ok(piece))) = tokio::time::timeout(CONNECT_TIMEOUT, pieces.next()).await {
        bytes.extend_from_slice(&piece);
        if bytes.len() >= ERROR_BODY_BYTES {
            bytes.truncate(ERROR_BODY_BYTES);
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `retry-after-ms` (OpenAI, Anthropic), else `retry-after` in seconds. A date there is ignored: the schedule's own wait is used.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    number("retry-after-ms")
        .map(|milliseconds| milliseconds / 1_000.0)
        .or_else(|| number("retry-after"))
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// The innermost cause, which is the one that says something; the address is left out because it is said elsewhere.
fn describe(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    let mut last = error.source();
    while let Some(cause) = last {
        innermost = cause;
        last = cause.source();
    }
    innermost.to_string()
}
