//! The mock model's server: HTTP/1.1 on the loopback interface, one connection a request.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::wire::{self, Scene};

/// Bytes of a request's body; an agent's history is far smaller.
const BODY: u64 = 64 << 20;

/// Requests served at once; a benchmark has one or two. More are turned away, so that a loop gone wild stays small.
const CONNECTIONS: usize = 64;

pub(crate) struct Mock {
    address: SocketAddr,
    requests: Arc<AtomicU32>,
}

impl Mock {
    /// Serves for as long as the process lives.
    pub(crate) fn start(address: SocketAddr) -> Result<Mock> {
        let listener = TcpListener::bind(address).context("cannot open a port for the mock model")?;
        let mock = Mock { address: listener.local_addr()?, requests: Arc::default() };
        let requests = mock.requests.clone();
        let open = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
                    open.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let (requests, open) = (requests.clone(), open.clone());
                std::thread::spawn(move || {
                    // A client that goes away in the middle is none of the mock's business.
                    let _ = serve(stream, &requests);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(mock)
    }

    /// The base address of a scene, with the version that OpenAI's clients expect in it.
    pub(crate) fn base(&self, scene: Scene) -> String {
        format!("http://{}{}/v1", self.address, scene.path())
    }

    /// Requests to a model so far.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}

struct Request {
    method: String,
    path: String,
    body: Vec<u8>,
}

fn serve(stream: TcpStream, requests: &AtomicU32) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let request = receive(&mut reader)?;
    let mut stream = stream;
    let path = request.path.split('?').next().unwrap_or_default();
    let Some((scene, endpoint)) = Scene::parse(path) else {
        return reply(&mut stream, 404, "application/json", &error("no such path"));
    };
    if request.method == "GET" && endpoint == "/v1/models" {
        let models = json!({"object": "list", "data": [{"id": "mock", "object": "model", "owned_by": "mock"}], "models": []});
        return reply(&mut stream, 200, "application/json", &models.to_string());
    }
    requests.fetch_add(1, Ordering::SeqCst);
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    match wire::answer(endpoint, &body, scene) {
        Ok(events) => {
            std::thread::sleep(Duration::from_millis(scene.delay_ms.into()));
            reply(&mut stream, 200, "text/event-stream", &events)
        }
        Err(said) => reply(&mut stream, 400, "application/json", &error(&said.to_string())),
    }
}

fn error(message: &str) -> String {
    json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).to_string()
}

fn reply(stream: &mut TcpStream, status: u16, mime: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} mock\r\ncontent-type: {mime}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

fn receive(reader: &mut impl BufRead) -> io::Result<Request> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (method, path) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let (mut length, mut chunked) = (0_u64, false);
    loop {
        let header = line(reader)?;
        let Some((name, value)) = header.split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(|_| broken("content-length"))?,
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let size = u64::from_str_radix(line(reader)?.trim(), 16).map_err(|_| broken("chunk"))?;
            take(reader, size, &mut body)?;
            line(reader)?;
            if size == 0 {
                break;
            }
        }
    } else {
        take(reader, length, &mut body)?;
    }
    Ok(Request { method, path, body })
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(64 << 10).read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line.trim_end().to_owned()) } else { Err(broken("line")) }
}

fn take(reader: &mut impl BufRead, size: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len() as u64 + size > BODY {
        return Err(broken("body"));
    }
    let taken = reader.take(size).read_to_end(body)?;
    if taken as u64 == size { Ok(()) } else { Err(broken("body")) }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a {what} that the mock does not understand"))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn ask(mock: &Mock, request: &str) -> String {
        let mut stream = TcpStream::connect(mock.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_turn_over_a_real_connection_with_a_body_of_either_form() {
        let mock = Mock::start(([127, 0, 0, 1], 0).into()).unwrap();
        let body = json!({"stream": true, "input": []}).to_string();
        let plain = ask(
            &mock,
            &format!("POST /0-2-0/v1/responses HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        );
        let (one, two) = body.split_at(9);
        let chunked = ask(
            &mock,
            &format!(
                "POST /0-2-0/v1/responses?x=1 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
                one.len(),
                two.len()
            ),
        );
        assert_eq!(plain, chunked);
        assert!(plain.starts_with("HTTP/1.1 200 ") && plain.contains("result 0 of 0 word001 "), "{plain}");
        assert_eq!(mock.requests(), 2);
        let models = ask(&mock, "GET /0-2-0/v1/models HTTP/1.1\r\n\r\n");
        assert!(models.contains("\"id\":\"mock\""), "{models}");
        assert!(ask(&mock, "GET /elsewhere HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(&mock, "POST /0-2-0/v1/responses HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    }
}
